// Events of threads and records of devices become values of nodes.
#include "data/recorder.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "backends/code_numbers.h"
#include "context/call_names.h"
#include "context/kernel_names.h"

namespace bragg {
namespace {

constexpr const char* kCopyNames[] = {"copy",      "copy HtoD", "copy DtoH", "copy HtoA", "copy AtoH", "copy AtoA",
                                      "copy AtoD", "copy DtoA", "copy DtoD", "copy HtoH", "copy PtoP"};

const char* operation_name(const DeviceEvent& event) {
  if (event.kind == DeviceEventKind::Set) return "set";
  return kCopyNames[static_cast<size_t>(event.copy_kind)];
}

KernelConfig config_of(const DeviceEvent& event, FrameId frame) {
  KernelConfig config;
  config.fields[0] = number_of(frame);
  std::copy(std::begin(event.launch_config), std::end(event.launch_config), &config.fields[1]);
  return config;
}

void tell_of_unknown_captures() {
  static bool told = false;
  if (std::exchange(told, true)) return;
  std::fputs("bragg: a graph was captured before recording; its kernels are shown under their launch\n", stderr);
}

uint64_t& counter_of(PhaseCounters& counters, DeviceEventKind kind) {
  switch (kind) {
    case DeviceEventKind::Kernel:
      return counters.kernels;
    case DeviceEventKind::Copy:
      return counters.copies;
    case DeviceEventKind::Set:
      return counters.sets;
    default:
      return counters.graphs;
  }
}

// The part of an event that belongs to a phase: a scope may have begun in an earlier one.
struct Span {
  int64_t start_ns;
  uint64_t duration_ns;
};
Span within(const Phase& phase, const Event& event) {
  const int64_t start_ns = std::max(event.interval.start_ns, phase.started_ns());
  return {start_ns, static_cast<uint64_t>(std::max<int64_t>(event.interval.end_ns - start_ns, 0))};
}

uint64_t duration_of(const Interval& interval) {
  return static_cast<uint64_t>(std::max<int64_t>(interval.end_ns - interval.start_ns, 0));
}

// A scope, or a call of the GPU's API, on a thread: its time in the tree, its place in the timeline.
void take_host_span(Phase& phase, const Event& event, TrackId track, CorrelationId correlation) {
  const NodeId node = phase.node_of(event);
  const Span span = within(phase, event);
  phase.work.cover(span.start_ns, event.interval.end_ns);
  phase.count(node, MetricGroup::Host, span.duration_ns);
  phase.activity.note_host(number_of(track), span.start_ns, event.interval.end_ns, node);
  if (phase.options().trace) phase.keep({span.start_ns, span.duration_ns, node, track, correlation});
}

bool has_interval(const DeviceEvent& event) { return event.start_ns > 0 && event.end_ns >= event.start_ns; }

}  // namespace

void Recorder::take_launch(ThreadContext& thread, const Event& event) {
  launch_count_.fetch_add(1, std::memory_order_relaxed);
  Launch launch{.shadow = event.shadow,
                .python = event.python,
                .name = event.work.kernel,
                .keeps = event.has_more_records,
                .round = round_,
                .thread = host_track(thread)};
  for_phases(event.mask, [&](Phase& phase) {
    phase.counters.launches += event.kind == EventKind::Launch;
    phase.work.cover(std::max(looked_before_ns_, phase.started_ns()), looks_at_ns_);
    phase.note_launch(event.correlation, launch);
    launch.mask |= phase.mask();
  });
  launch.code = event.work.code;
  launch.graph = event.work.graph;
  if (event.correlation != CorrelationId::None) launches_.insert(event.correlation, launch);
  if (launch.graph == GraphVersionId::None) return;
  if (event.mask == 0) return captured_paths_.note_unrecorded_launch(launch);
  captured_paths_.note_launch(launch);
}

void Recorder::take_no_launch(const Event& event) {
  const Launch* found = launches_.find(event.correlation);
  const Launch launch = found != nullptr ? *found : Launch{.round = round_};
  if (launch.graph != GraphVersionId::None) captured_paths_.take_back(launch);
  for_phases(event.mask, [&](Phase& phase) {
    phase.counters.launches -= !event.is_own;
    phase.counters.failed_launches += !event.is_own && event.kind == EventKind::Failed;
    phase.note_no_launch(launch);
  });
}

void Recorder::take_launch_end(ThreadContext& thread, const Event& event) {
  if (Launch* launch = launches_.find(event.correlation)) launch->end_at(event.interval.end_ns);
  for_phases(event.mask, [&](Phase& phase) {
    phase.activity.note_host(number_of(host_track(thread)), event.interval.start_ns, event.interval.end_ns,
                             phase.node_of(event), true);
    if (!phase.options().trace) return;
    const FrameId api = CallNames::instance().frame(event.call);
    phase.keep({event.interval.start_ns, duration_of(event.interval),
                CallingContextTree::instance().child(phase.node_of(event), api), host_track(thread),
                event.correlation});
  });
}

void Recorder::take_sample(ThreadContext& thread, const Event& event) {
  const bool is_of_another = event.sampled_thread != 0;
  SampledThread& sampled = sampled_thread(is_of_another ? event.sampled_thread : thread.system_id.load());
  const MetricGroup group = is_of_another ? MetricGroup::Thread : MetricGroup::Sample;
  // Two clocks are read for a sample, one after the other: by what lies between them samples would overlap.
  Event rest = event;
  rest.interval.start_ns = std::max(rest.interval.start_ns, std::exchange(sampled.until_ns, event.interval.end_ns));
  for_phases(event.mask, [&](Phase& phase) {
    if (!phase.options().python_context) return;
    phase.counters.samples += !event.is_smaller_part;
    phase.count(event.python, group, duration_of(event.interval), 0, event.is_smaller_part ? 0 : 1);
    const Span span = within(phase, rest);
    if (phase.options().trace && span.duration_ns > 0)
      phase.keep({span.start_ns, span.duration_ns, event.python, sampled.track, CorrelationId::None});
  });
}

void Recorder::take_marker(ThreadContext& thread, const Event& event) {
  for_phases(event.mask, [&](Phase& phase) {
    ++phase.counters.markers;
    const NodeId node = phase.node_of(event);
    const Span span = within(phase, event);
    phase.count(node, MetricGroup::Marker, span.duration_ns);
    if (!phase.options().trace) return;
    const TrackId track = event.kind == EventKind::Mark ? host_track(thread) : range_track();
    phase.keep({span.start_ns, span.duration_ns, node, track, CorrelationId::None});
  });
}

void Recorder::take_event(ThreadContext& thread, const Event& event) {
  switch (event.kind) {
    case EventKind::Launch:
    case EventKind::OwnLaunch:
      return take_launch(thread, event);
    case EventKind::Captured:
    case EventKind::Failed:
      return take_no_launch(event);
    case EventKind::LaunchEnd:
      return take_launch_end(thread, event);
    case EventKind::Scope:
      return for_phases(event.mask, [&](Phase& phase) {
        ++phase.counters.scopes;
        take_host_span(phase, event, host_track(thread), CorrelationId::None);
      });
    case EventKind::ApiCall:
      return take_api_call(thread, event);
    case EventKind::Sample:
      return take_sample(thread, event);
    case EventKind::Value:
      return for_phases(event.mask, [&](Phase& phase) {
        phase.add_value({phase.node_of(event), event.metric, event.value.index, event.value.length}, event.value.bits);
      });
    case EventKind::Input:
      return for_phases(event.mask, [&](Phase& phase) {
        phase.add_input({phase.node_of(event), event.input, phase.node_of(event.origin), event.origin.output});
      });
    case EventKind::Mark:
    case EventKind::Range:
      return take_marker(thread, event);
  }
}

void Recorder::take_api_call(ThreadContext& thread, const Event& event) {
  if (event.correlation != CorrelationId::None)
    if (Launch* launch = launches_.find(event.correlation)) launch->end_at(event.interval.end_ns);
  for_phases(event.mask, [&](Phase& phase) {
    ++phase.counters.api_calls;
    take_host_span(phase, event, host_track(thread), event.correlation);
  });
  if (event.waiting == Waiting::Yes) return take_wait(event);
  if (event.waiting == Waiting::No || event.correlation == CorrelationId::None) return;
  if (const auto call = copy_waits_.note_call(event)) take_wait(*call);
}

void Recorder::take_wait(const Event& call) {
  for_phases(call.mask, [&](Phase& phase) {
    phase.count(phase.node_of(call), MetricGroup::Wait, within(phase, call).duration_ns);
  });
}

void Recorder::take_arrived_value(const ArrivedValue& value) {
  const ValueTarget& target = value.target;
  const auto add = [&](Phase& phase, NodeId node, uint64_t bits, uint64_t count) {
    phase.counters.unordered_values += value.is_unordered ? count : 0;
    phase.add_value({node, target.metric, value.index, target.length}, bits, count);
  };
  if (target.reading == ReadingId::None)
    return for_phases(target.mask, [&](Phase& phase) { add(phase, phase.node_of(target), value.bits, value.count); });
  captured_paths_.take_reading(value, [&](const Launch& launch, uint64_t bits, uint64_t count) {
    for_phases(launch.mask & kSlots, [&](Phase& phase) {
      add(phase, captured_below(phase.node_of(launch), phase.node_of(target)), bits, count);
    });
  });
}

// Adds the values that graphs recorded at each of their launches. Before sessions are written.
void Recorder::add_graph_values() {
  for (const ReplayedValues& replayed : captured_paths_.take_values())
    for_phases(replayed.launch.mask & kSlots, [&](Phase& phase) {
      for (const CapturedValue& value : replayed.graph->values) {
        const NodeId node = captured_below(phase.node_of(replayed.launch), phase.node_of(value.nodes));
        phase.repeat_value({node, value.metric, value.index, value.length}, value.bits, replayed.count);
      }
    });
}

// Whether the only record of its launch came before, or the same record just before.
bool Recorder::is_duplicate(const DeviceEvent& event, const Launch* launch) {
  const RecordId id{event.correlation, event.start_ns, event.graph_node};
  const bool is_same = std::exchange(last_record_, id) == id && event.start_ns != 0;
  return is_same || (launch != nullptr && launch->has_all());
}

void Recorder::take_device_event(const DeviceEvent& event) {
  Launch* launch = launches_.find(event.correlation);
  if (is_duplicate(event, launch)) {
    const SessionMask mask = launch != nullptr ? launch->mask : recording_state.active.load();
    return for_phases(mask & recording_state.existing.load() & kSlots,
                      [](Phase& phase) { ++phase.counters.duplicates; });
  }
  if (event.kind == DeviceEventKind::Copy && event.graph_node == GraphNodeId::None && follows_api_calls())
    if (const auto call = copy_waits_.note_record(event.correlation, event.holds_host)) take_wait(*call);
  ++records_taken_;
  if (launch != nullptr) launch->note_record();
  if (launch != nullptr && event.graph_node != GraphNodeId::None)
    graph_progress_.note_record(*launch, event, monotonic_ns());
  if (launch == nullptr && event.graph_node != GraphNodeId::None) {
    if (const Launch* graph = captured_paths_.launch_of(event.graph)) return take_record_of_condition(*graph, event);
  }
  if (launch == nullptr && event.kind == DeviceEventKind::Graph) return;  // launched while nothing recorded
  if (launch == nullptr) {
    for_phases(recording_state.existing.load() & ~retired_.load(), [&](Phase& phase) {
      if (phase.is_older(event)) return;
      ++phase.counters.unattributed;
      take_record(phase, {}, event);
    });
    return;
  }
  SessionMask late_sessions = launch->mask >> kSessionShift;  // whose phase has ended: the records are the newest one's
  for_phases(launch->mask & recording_state.existing.load() & kSlots, [&](Phase& phase) {
    if (phase.starts_after(event.correlation)) return;  // another phase is in the slot by now
    late_sessions &= ~(phase.mask() >> kSessionShift);
    phase.note_record(*launch);
    take_record(phase, *launch, event);
  });
  for (uint32_t session = 0; late_sessions != 0; ++session, late_sessions >>= 1) {
    Phase* phase = (late_sessions & 1) != 0 ? newest_on(session) : nullptr;
    if (phase == nullptr || phase->is_older(event)) continue;
    ++phase->counters.late;
    take_record(*phase, *launch, event);
  }
}

// Work that a condition of a graph has let run: it has no correlation id.
void Recorder::take_record_of_condition(const Launch& graph_launch, const DeviceEvent& event) {
  for_phases(graph_launch.mask & recording_state.existing.load() & kSlots,
             [&](Phase& phase) { take_record(phase, graph_launch, event); });
}

// nullptr: it ran for no graph, or it is a whole graph.
CapturedPlace* Recorder::captured_place_of(const Launch& launch, const DeviceEvent& event) {
  if (event.graph_node == GraphNodeId::None) return nullptr;
  return &captured_paths_.place_of(launch, event, [&](StringId name) { return device_frame(event, name); });
}

void Recorder::take_record(Phase& phase, const Launch& launch, const DeviceEvent& event) {
  PhaseCounters& counters = phase.counters;
  if (!has_interval(event)) {
    ++counters.bad_timestamps;
    return;
  }
  const auto duration_ns = static_cast<uint64_t>(event.end_ns - event.start_ns);
  if (event.is_own) {
    ++counters.metric_kernels;
    counters.metric_kernels_ns += duration_ns;
    return;
  }
  CapturedPlace* const captured = captured_place_of(launch, event);
  const FrameId frame = captured != nullptr ? captured->frame : device_frame(event, launch.name);
  const NodeId node = captured != nullptr ? captured_paths_.node_of(*captured, launch, phase.options().python_context)
                                          : CallingContextTree::instance().child(phase.node_of(launch), frame);
  phase.activity.add(event, {phase.node_of(launch), number_of(launch.thread), launch.ended_ns()});
  phase.work.cover(event.start_ns, event.end_ns);
  phase.count(node, MetricGroup::Device, duration_ns, event.bytes);
  if (phase.options().trace) phase.keep({event.start_ns, duration_ns, node, stream_track(event), event.correlation});
  if (event.kind == DeviceEventKind::Kernel) phase.count_kernel(config_of(event, frame));
  if (event.kind == DeviceEventKind::Kernel || event.kind == DeviceEventKind::Graph) phase.count_duration(frame, event);
  if (event.kind == DeviceEventKind::Kernel && phase.samples_instructions())
    note_sampled_kernel(phase, event, CodeNumbers::instance().crc(launch.code), node);
  if (captured != nullptr && captured->captured == nullptr) {
    ++counters.unknown_captures;
    tell_of_unknown_captures();
  }
  ++counter_of(counters, event.kind);
}

FrameId Recorder::device_frame(const DeviceEvent& event, StringId wanted) {
  if (event.kind == DeviceEventKind::Graph)
    return FrameTable::instance().intern(
        FrameKind::Kernel,
        std::string("<").append(event.name).append(" ") + std::to_string(number_of(event.graph)) + ">", event.device);
  if (event.kind != DeviceEventKind::Kernel)
    return FrameTable::instance().intern(FrameKind::Memory, operation_name(event), event.device);
  const char* name = event.name != nullptr ? event.name : "(unnamed kernel)";
  auto& [text, frames] = kernel_frames_[name];
  if (text != name) {  // first sight, or the driver reused the address for another name
    text = name;
    frames.clear();
  }
  const auto [found, is_new] = frames.try_emplace({event.device, wanted}, FrameId::None);
  if (is_new) {
    auto& table = FrameTable::instance();
    const bool fits = wanted != StringId::None && KernelNames::instance().fits(wanted, text);
    found->second = table.intern(FrameKind::Kernel, fits ? table.string(wanted) : text, event.device);
    if (fits) KernelNames::instance().describe(found->second, wanted);
  }
  return found->second;
}

TrackId Recorder::host_track(ThreadContext& thread) {
  if (thread.track == TrackId::None) {
    const std::string name = "thread " + std::to_string(thread.system_id);
    thread.track =
        add_track({TrackKind::HostThread, kNone, kNone, thread.system_id, FrameTable::instance().intern_string(name)});
  }
  return thread.track;
}

// Apart from what the thread's scopes and operators measured exactly.
Recorder::SampledThread& Recorder::sampled_thread(uint32_t system_id) {
  const auto [found, is_new] = sampled_threads_.try_emplace(system_id);
  if (is_new) {
    const std::string name = "samples of thread " + std::to_string(system_id);
    found->second.track =
        add_track({TrackKind::Samples, kNone, kNone, system_id, FrameTable::instance().intern_string(name)});
  }
  return found->second;
}

// Of the whole process: a reader spreads ranges that overlap over several lanes.
TrackId Recorder::range_track() {
  if (range_track_ == TrackId::None)
    range_track_ = add_track({TrackKind::Ranges, kNone, kNone, 0, FrameTable::instance().intern_string("ranges")});
  return range_track_;
}

TrackId Recorder::stream_track(const DeviceEvent& event) {
  const auto [found, is_new] = stream_tracks_.try_emplace({event.device, event.context, event.stream});
  if (is_new) {
    const std::string name = "GPU " + std::to_string(event.device) + " stream " + std::to_string(event.stream);
    found->second = add_track(
        {TrackKind::GpuStream, event.device, event.context, event.stream, FrameTable::instance().intern_string(name)});
  }
  return found->second;
}

}  // namespace bragg
