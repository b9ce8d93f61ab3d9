#include "data/recorder.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "backends/cubin_store.h"
#include "backends/cuda.h"
#include "backends/device_values.h"
#include "backends/function_cubins.h"
#include "backends/launch_gate.h"
#include "backends/pc_sampling.h"
#include "backends/sampled_spans.h"
#include "context/clock.h"
#include "context/consumer_signal.h"
#include "context/kernel_names.h"
#include "context/stream_captures.h"
#include "data/json.h"
#include "driver/cuda_driver.h"

namespace bragg {
namespace {

constexpr uint32_t kPollMs = 20;  // idle consumer: 50 wake-ups a second
constexpr long kEndingPollNs = 10'000'000;
constexpr int kEndingPolls = 300;                // 3 s
constexpr int64_t kDeviceFlushNs = 500'000'000;  // completed records wait in CUPTI's buffers no longer than this
constexpr int64_t kEndingFlushNs = 20'000'000;   // nor than this while a phase waits for its last ones
// A phase that ends by itself does within some device flushes.
constexpr timespec kSlotNap{.tv_sec = 0, .tv_nsec = 500'000};
constexpr int kSlotNaps = 200;
constexpr uint8_t kNoLine = kMaxSessions;
constexpr const char* kCopyNames[] = {"copy",      "copy HtoD", "copy DtoH", "copy HtoA", "copy AtoH", "copy AtoA",
                                      "copy AtoD", "copy DtoA", "copy DtoD", "copy HtoH", "copy PtoP"};

const char* operation_name(const DeviceEvent& event) {
  if (event.kind == DeviceEventKind::Set) return "set";
  return kCopyNames[event.copy_kind < std::size(kCopyNames) ? event.copy_kind : 0];
}

KernelConfig config_of(const DeviceEvent& event, FrameId frame) {
  KernelConfig config;
  config.fields[0] = frame;
  std::copy(std::begin(event.launch_config), std::end(event.launch_config), &config.fields[1]);
  return config;
}

// A signal that interrupted a control call could not be finished: the consumer would wait for the locks of this thread.
class ControlLock {
 public:
  explicit ControlLock(std::mutex& mutex) : mutex_(mutex) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    mutex_.lock();
  }
  ~ControlLock() {
    mutex_.unlock();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  ControlLock(const ControlLock&) = delete;
  ControlLock& operator=(const ControlLock&) = delete;

 private:
  std::mutex& mutex_;
  sigset_t before_{};
};

// A kernel of ours is no work of the program, also as a node of a graph.
bool is_own(const DeviceEvent& event) {
  return event.kind == DeviceEventKind::Kernel && event.name != nullptr &&
         std::strcmp(event.name, value_kernel::kName) == 0;
}

void tell_of_unknown_captures() {
  static bool told = false;
  if (std::exchange(told, true)) return;
  std::fputs("bragg: a CUDA graph was captured before recording; its kernels are shown under their launch\n", stderr);
}

uint64_t& counter_of(SessionCounters& counters, DeviceEventKind kind) {
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

// What of an event is a session's: a scope may have begun in an earlier phase.
struct Span {
  int64_t start_ns;
  uint64_t duration_ns;
};
Span within(const Session& session, const Event& event) {
  const int64_t start_ns = std::max(event.start_ns, session.started_ns());
  return {start_ns, static_cast<uint64_t>(std::max<int64_t>(event.end_ns - start_ns, 0))};
}

bool has_interval(const DeviceEvent& event) { return event.start_ns > 0 && event.end_ns >= event.start_ns; }

}  // namespace

Recorder& Recorder::instance() {
  static Recorder& recorder = *new Recorder;  // driver threads may outlive static destruction
  return recorder;
}

template <class Visit>
void Recorder::for_sessions(uint32_t mask, Visit&& visit) {
  for (uint32_t slot = 0; mask != 0; ++slot, mask >>= 1)
    if ((mask & 1) != 0)
      if (Session* session = owner(slot)) visit(*session);
}

// Of an event: a thread may have taken its time to write it, until its phase had ended.
Session* Recorder::owner(uint32_t slot) {
  if (sessions_[slot] != nullptr) return sessions_[slot].get();
  return newest_on(recording_state.line_of_slot[slot].load(std::memory_order_relaxed));
}

Session* Recorder::newest_on(uint32_t line) {
  const uint32_t slot = line < kMaxSessions ? slot_of_line_[line] : kNone;
  return slot != kNone ? sessions_[slot].get() : nullptr;
}

// Control
// ----------------------------------------------------------------------------------------------------------------

template <class Open>
StartResult Recorder::in_free_slot(Open&& open) {
  for (int nap = 0;; ++nap) {
    {
      const ControlLock control(control_mutex_);
      if (const uint32_t slot = free_slot(); slot != kNone) return open(slot);
      if (retired_.load() == 0) return {-1, 0, "16 sessions are already open; stop one first"};
      if (nap == kSlotNaps) {
        wait_for_devices();
        const std::lock_guard work(work_mutex_);
        bring_all();
      }
    }
    consumer_signal.wake();
    nanosleep(&kSlotNap, nullptr);
  }
}

uint32_t Recorder::free_slot() {
  const std::lock_guard work(work_mutex_);
  for (uint32_t i = 0; i < kMaxSessions; ++i) {
    const uint32_t slot = (next_slot_ + i) % kMaxSessions;
    if (sessions_[slot] != nullptr) continue;
    next_slot_ = (slot + 1) % kMaxSessions;
    return slot;
  }
  return kNone;
}

uint32_t Recorder::free_line() {
  while (slot_of_line_[next_line_] != kNone) next_line_ = (next_line_ + 1) % kMaxSessions;
  return std::exchange(next_line_, (next_line_ + 1) % kMaxSessions);
}

void Recorder::install(std::unique_ptr<Session> session, uint32_t slot) {
  const SessionMask bit = 1u << slot;
  const SessionOptions& options = session->options();
  recording_state.line_of_slot[slot].store(static_cast<uint8_t>(session->line()));
  slot_of_line_[session->line()] = slot;
  if (options.python_context) recording_state.python.fetch_or(bit);
  if (options.trace) recording_state.trace.fetch_or(bit);
  if (session->samples_instructions()) samples_of_line_.try_emplace(session->line());
  session->before = thread_totals();
  next_flush_ns_[slot] = now_ns();
  sessions_[slot] = std::move(session);
  recording_state.existing.fetch_or(bit);
}

// With a session that is about to start.
bool Recorder::all_want_whole_graphs(const Session& next) {
  const std::lock_guard work(work_mutex_);
  const bool others_do = std::ranges::all_of(sessions_, [](const auto& each) {
    return each == nullptr || each->options().backend == BackendChoice::Cpu || each->options().graph_level;
  });
  if (next.options().graph_level && !others_do)
    std::fputs("bragg: CUDA graphs are recorded by their nodes, not as a whole: another session wants the nodes\n",
               stderr);
  return next.options().graph_level && others_do;
}

StartResult Recorder::start(SessionOptions options) {
  return in_free_slot([&](uint32_t slot) -> StartResult {
    const bool wants_cuda = options.backend != BackendChoice::Cpu;
    const std::string candidates = options.cupti_candidates;
    auto session = std::make_unique<Session>(std::move(options), slot, free_line());
    if (const int error = session->open()) return {-1, error, {}};
    if (wants_cuda) {
      pc_sampling::want(session->options().sampling);
      cuda_backend::set_graph_level(all_want_whole_graphs(*session));
      cuda_backend::start(candidates);
    }
    const SessionMask mask = session->mask();
    const auto line = static_cast<int>(session->line());
    {
      const std::lock_guard work(work_mutex_);
      step();  // what is left of earlier sessions is not this one's
      install(std::move(session), slot);
    }
    recording_state.active.fetch_or(mask);
    update_collecting();
    if (consumer_ == nullptr) {
      stopping_.store(false);
      consumer_ = std::make_unique<std::thread>([this] { consumer_loop(); });
    }
    return {line, 0, {}};
  });
}

StartResult Recorder::advance(int session, const std::string& part_path, const std::string& meta_json,
                              const std::string& end_meta_json) {
  return in_free_slot([&](uint32_t slot) -> StartResult {
    const int error = begin_phase(slot, current(session), part_path, meta_json, end_meta_json);
    return {error == 0 ? session : -1, error, {}};
  });
}

int Recorder::begin_phase(uint32_t slot, Session& ended, const std::string& part_path, const std::string& meta_json,
                          const std::string& end_meta_json) {
  SessionOptions options = ended.options();
  options.part_path = part_path;
  options.meta_json = meta_json;
  auto next = std::make_unique<Session>(std::move(options), slot, ended.line());
  if (const int error = next->open()) return error;
  const SessionMask old_mask = ended.mask();
  const SessionMask mask = next->mask();
  const std::lock_guard work(work_mutex_);
  next->follow(ended);
  ended.retire(thread_totals(), end_meta_json);
  retired_.fetch_or(1u << ended.slot());
  install(std::move(next), slot);
  SessionMask active = recording_state.active.load();  // at once: a launch is in one phase or the other
  while (!recording_state.active.compare_exchange_weak(
      active, (active & old_mask) == old_mask ? (active & ~old_mask) | mask : active)) {
  }
  return 0;
}

// The control lock's holder may wait for this thread: then it is done at the next poll.
void Recorder::rotate_due_sessions() {
  const std::unique_lock control(control_mutex_, std::try_to_lock);
  if (!control) return;
  const int64_t now = now_ns();
  for (const uint32_t slot : slot_of_line_) {
    if (slot == kNone || now < sessions_[slot]->rotates_at_ns()) continue;
    const uint32_t next_slot = free_slot();
    if (next_slot == kNone) return;
    Session& ended = *sessions_[slot];
    const std::string path = ended.next_part_path();
    const std::string end_meta = JsonObject().put("stopped_ns", now).text();
    if (const int error = begin_phase(next_slot, ended, path, ended.next_meta_json(), end_meta)) {
      std::fprintf(stderr, "bragg: %s: the phase goes on: %s\n", path.c_str(), std::strerror(error));
      ended.postpone_rotation();
    }
  }
}

void Recorder::activate(int session) {
  const ControlLock control(control_mutex_);
  recording_state.active.fetch_or(current(session).mask());
  update_collecting();
}

void Recorder::deactivate(int session, bool flush) {
  const ControlLock control(control_mutex_);
  recording_state.active.fetch_and(~current(session).mask());
  if (flush) {
    wait_for_devices();
    const std::lock_guard work(work_mutex_);
    bring_all();
  }
  update_collecting();
}

void Recorder::wait_for_devices() {
  cuda_backend::flush(true);
  device_values::wait();
  pc_sampling::bring();
  const std::lock_guard flushed(device_flush_mutex_);  // what a flush of the consumer has taken meanwhile is here, too
}

void Recorder::update_collecting() {
  cuda_backend::set_collecting(recording_state.active.load() != 0);
  pc_sampling::set_active(recording_state.active.load() != 0);
}

void Recorder::flush(int session) {
  const ControlLock control(control_mutex_);
  wait_for_devices();
  const std::lock_guard work(work_mutex_);
  bring_all();
  Session& phase = current(session);
  phase.flush(tracks_, statistics_json(phase));
}

void Recorder::stop(int session, const std::string& meta_json) {
  const ControlLock control(control_mutex_);
  Session& phase = current(session);
  recording_state.active.fetch_and(~phase.mask());
  wait_for_devices();
  if (is_last_sampled(phase)) pc_sampling::finish();
  update_collecting();
  {
    const std::lock_guard work(work_mutex_);
    bring_all();
    const uint32_t line = phase.line();
    end(phase, meta_json);
    slot_of_line_[line] = kNone;
    for (auto& line_of_slot : recording_state.line_of_slot)  // late events of this session meet no other
      if (line_of_slot.load() == line) line_of_slot.store(kNoLine);
  }
  if (recording_state.existing.load() == 0) finish_consumer();
}

void Recorder::bring_all() {
  step();
  settle_samples();
  add_graph_values();
  for_sessions(retired_.load(), [this](Session& session) { end(session, session.end_meta_json()); });
}

void Recorder::end(Session& session, const std::string& meta_json) {
  end_samples(session);
  session.finish(tracks_, statistics_json(session), meta_json);
  const uint32_t slot = session.slot();
  sessions_[slot].reset();
  for (auto* mask : {&recording_state.python, &recording_state.trace, &recording_state.existing, &retired_})
    mask->fetch_and(~(1u << slot));
}

void Recorder::finish_consumer() {
  pc_sampling::finish();
  cuda_backend::detach();
  stopping_.store(true);
  consumer_signal.wake();
  consumer_->join();
  consumer_.reset();
  launches_.clear();
  captured_paths_.clear();
}

std::string Recorder::statistics(int session) {
  const ControlLock control(control_mutex_);
  const std::lock_guard work(work_mutex_);
  step();
  return statistics_json(current(session));
}

// The driver holds its own locks here, so this must not wait for a control call that may be waiting for the driver; if
// one is under way the consumer's poll attaches half a second later.
void Recorder::on_cuda_initialized() {
  const std::unique_lock control(control_mutex_, std::try_to_lock);
  if (!control) return;
  cuda_backend::on_cuda_initialized();
  update_collecting();
}

// Consumer
// ---------------------------------------------------------------------------------------------------------------

void Recorder::consumer_loop() {
  pthread_setname_np(pthread_self(), "bragg");
  while (!stopping_.load()) {
    consumer_signal.wait_ms(kPollMs);
    if (const int number = ending_signal_.load()) finish_and_end_by(number);
    {
      const std::lock_guard work(work_mutex_);
      step();
    }
    const int64_t now = now_ns();
    const int64_t interval_ns = retired_.load() != 0 ? kEndingFlushNs : kDeviceFlushNs;
    if (now >= device_flushed_ns_ + interval_ns) {  // without the work lock: CUPTI may wait for one that waits for us
      cuda_backend::poll();
      const std::lock_guard flushing(device_flush_mutex_);
      cuda_backend::flush(false);
      device_flushed_ns_ = now;
      samples_are_due_.store(true);
    }
    pc_sampling::step(launch_count_.load());
    rotate_due_sessions();
    const std::lock_guard work(work_mutex_);
    end_drained_phases();
    flush_due_sessions();
    if (now == device_flushed_ns_) {
      add_graph_values();
      captured_paths_.trim(now);
    }
  }
  if (const int number = ending_signal_.load()) finish_and_end_by(number);
}

// Ending by a signal
// ----------------------------------------------------------------------------------------------------

bool Recorder::finish_on_signal(int number) {
  struct sigaction current{};
  if (sigaction(number, nullptr, &current) != 0 || current.sa_handler != SIG_DFL) return false;
  struct sigaction ours{};
  ours.sa_handler = on_ending_signal;
  ours.sa_flags = SA_RESTART | SA_ONSTACK;
  return sigaction(number, &ours, nullptr) == 0;
}

// The thread that was interrupted goes no further, as without us. It may hold a lock that the consumer needs
// (malloc's), so it waits for its end no longer than it takes to write a large capture.
void Recorder::on_ending_signal(int number) {
  if (recording_state.existing.load() != 0) {
    instance().ending_signal_.store(number);
    consumer_signal.wake();
    for (int poll = 0; poll < kEndingPolls && recording_state.existing.load() != 0; ++poll) {
      const timespec pause{.tv_sec = 0, .tv_nsec = kEndingPollNs};
      nanosleep(&pause, nullptr);
    }
  }
  signal(number, SIG_DFL);
  raise(number);
}

void Recorder::finish_and_end_by(int number) {
  cuda_backend::flush(false);
  pc_sampling::bring();
  {
    const std::lock_guard work(work_mutex_);
    step();
    settle_samples();
    add_graph_values();
    for_sessions(recording_state.existing.load(), [this](Session& session) {
      session.finish(tracks_, statistics_json(session), session.end_meta_json());
    });
  }
  signal(number, SIG_DFL);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, number);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  raise(number);
  std::abort();  // not reached: the default of the signals that we take is to end the process
}

void Recorder::step() {
  std::vector<ArrivedValue> arrived;
  const auto before_records = [&] {
    arrived = device_values::take_arrived();  // so that the launches of the graphs that read them are in the rings
    drain_rings();
  };
  cuda_backend::consume(before_records, [this](const DeviceEvent& event) { take_device_event(event); });
  for (const ArrivedValue& value : arrived) take_arrived_value(value);
  take_samples();
  for_sessions(recording_state.trace.load(), [this](Session& session) {
    if (session.wants_flush()) session.flush(tracks_, statistics_json(session));
  });
}

void Recorder::end_drained_phases() {
  if (retired_.load() == 0) return;
  step();  // what the flush brought
  add_graph_values();
  SessionMask drained = 0;
  for_sessions(retired_.load(), [&](Session& session) {
    if (session.is_drained(device_flushed_ns_)) drained |= 1u << session.slot();
  });
  if (drained == 0) return;
  if (!samples_of_line_.empty()) {  // samples come later than the records of their kernels
    pc_sampling::bring();
    step();
    settle_samples();
  }
  for_sessions(drained, [this](Session& session) { end(session, session.end_meta_json()); });
}

void Recorder::drain_rings() {
  ThreadRegistry::instance().for_each([this](ThreadContext& thread) {
    const bool exited = thread.exited.load(std::memory_order_acquire);
    thread.ring.drain([&](const Event& event) { take_event(thread, event); });
    if (exited) ThreadRegistry::instance().release(&thread);
  });
}

void Recorder::take_event(ThreadContext& thread, const Event& event) {
  const auto duration_ns = static_cast<uint64_t>(std::max<int64_t>(event.end_ns - event.start_ns, 0));
  switch (event.kind) {
    case EventKind::Launch:
    case EventKind::OwnLaunch: {
      launch_count_.fetch_add(1, std::memory_order_relaxed);
      Launch launch{event.shadow, event.python, static_cast<StringId>(event.start_ns - 1), 0, event.detail != 0};
      for_sessions(event.mask, [&](Session& session) {
        session.counters.launches += event.kind == EventKind::Launch;
        session.note_launch(event.correlation, launch.keeps);
        launch.mask |= session.mask();
      });
      if (event.detail == 0 && event.mask != 0) {
        launch.cubin = static_cast<CubinNumber>(event.end_ns);
      } else {
        launch.graph = static_cast<GraphVersionId>(event.end_ns);
      }
      if (event.mask == 0) return captured_paths_.note_unrecorded_launch(launch);
      launches_.insert(event.correlation, launch);
      if (launch.graph != 0) captured_paths_.note_launch(launch);
      return;
    }
    case EventKind::Captured:
      for_sessions(event.mask, [&](Session& session) {
        session.counters.launches -= event.detail == 0;
        session.note_captured();
      });
      return;
    case EventKind::LaunchEnd: {
      const FrameId api = FrameTable::instance().intern(FrameKind::GpuApi, cuda_backend::api_name(event.detail));
      for_sessions(event.mask, [&](Session& session) {
        if (session.options().trace)
          session.keep({event.start_ns, duration_ns, CallingContextTree::instance().child(session.node_of(event), api),
                        host_track(thread), event.correlation});
      });
      return;
    }
    case EventKind::Scope:
      for_sessions(event.mask, [&](Session& session) {
        ++session.counters.scopes;
        const NodeId node = session.node_of(event);
        const Span span = within(session, event);
        session.count(node, MetricGroup::Host, span.duration_ns);
        if (session.options().trace) session.keep({span.start_ns, span.duration_ns, node, host_track(thread), 0});
      });
      return;
    case EventKind::Sample:
      for_sessions(event.mask, [&](Session& session) {
        if (!session.options().python_context) return;
        ++session.counters.samples;
        session.count(event.python, MetricGroup::Sample, duration_ns);
      });
      return;
    case EventKind::Value: {
      const auto element = static_cast<uint64_t>(event.end_ns);
      for_sessions(event.mask, [&](Session& session) {
        session.add_value({session.node_of(event), event.correlation, static_cast<uint32_t>(element >> 32),
                           static_cast<uint32_t>(element)},
                          static_cast<uint64_t>(event.start_ns));
      });
      return;
    }
    case EventKind::Mark:
    case EventKind::Range:
      for_sessions(event.mask, [&](Session& session) {
        ++session.counters.markers;
        const NodeId node = session.node_of(event);
        const Span span = within(session, event);
        session.count(node, MetricGroup::Marker, span.duration_ns);
        if (!session.options().trace) return;
        const uint32_t track = event.kind == EventKind::Mark ? host_track(thread) : range_track();
        session.keep({span.start_ns, span.duration_ns, node, track, 0});
      });
      return;
  }
}

void Recorder::take_arrived_value(const ArrivedValue& value) {
  const ValueTarget& target = value.target;
  const auto add = [&](Session& session, NodeId node, uint64_t bits, uint64_t count) {
    session.counters.unordered_values += value.is_unordered ? count : 0;
    session.add_value({node, target.metric, value.index, target.length}, bits, count);
  };
  if (target.capture == 0)
    return for_sessions(target.mask,
                        [&](Session& session) { add(session, session.node_of(target), value.bits, value.count); });
  captured_paths_.take_reading(value, [&](const Launch& launch, uint64_t bits, uint64_t count) {
    for_sessions(launch.mask & kSlots, [&](Session& session) {
      add(session, captured_below(session.node_of(launch), session.node_of(target)), bits, count);
    });
  });
}

// What graphs recorded each time they were launched. Before sessions are written.
void Recorder::add_graph_values() {
  for (const ReplayedValues& replayed : captured_paths_.take_values())
    for_sessions(replayed.launch.mask & kSlots, [&](Session& session) {
      for (const CapturedValue& value : replayed.graph->values) {
        const NodeId node = captured_below(session.node_of(replayed.launch), session.node_of(value.nodes));
        session.repeat_value({node, value.metric, value.index, value.length}, value.bits, replayed.count);
      }
    });
}

void Recorder::take_device_event(const DeviceEvent& event) {
  const Launch* launch = launches_.take(event.correlation);
  if (launch == nullptr && event.graph_node != 0) {
    if (const Launch* graph = captured_paths_.launch_of(event.graph)) return take_record_of_condition(*graph, event);
  }
  if (launch == nullptr && event.kind == DeviceEventKind::Graph) return;  // launched while nothing recorded
  if (launch == nullptr) {
    for_sessions(recording_state.existing.load() & ~retired_.load(), [&](Session& session) {
      if (session.is_older(event)) return;
      ++session.counters.unattributed;
      take_record(session, {}, event);
    });
    return;
  }
  SessionMask late_lines = launch->mask >> kLineShift;  // whose phase has ended: the records are the newest one's
  for_sessions(launch->mask & recording_state.existing.load() & kSlots, [&](Session& session) {
    if (session.starts_after(event.correlation)) return;  // another phase is in the slot by now
    late_lines &= ~(session.mask() >> kLineShift);
    session.note_record(*launch);
    take_record(session, *launch, event);
  });
  for (uint32_t line = 0; late_lines != 0; ++line, late_lines >>= 1) {
    Session* session = (late_lines & 1) != 0 ? newest_on(line) : nullptr;
    if (session == nullptr || session->is_older(event)) continue;
    ++session->counters.late;
    take_record(*session, *launch, event);
  }
}

// Work that a condition of a graph has let run: it has no correlation id.
void Recorder::take_record_of_condition(const Launch& graph_launch, const DeviceEvent& event) {
  for_sessions(graph_launch.mask & recording_state.existing.load() & kSlots,
               [&](Session& session) { take_record(session, graph_launch, event); });
}

// nullptr: it ran for no graph, or it is a whole graph.
CapturedPlace* Recorder::captured_place_of(const Launch& launch, const DeviceEvent& event) {
  if (event.graph_node == 0) return nullptr;
  return &captured_paths_.place_of(launch, event, [&](StringId name) { return device_frame(event, name); });
}

void Recorder::take_record(Session& session, const Launch& launch, const DeviceEvent& event) {
  SessionCounters& counters = session.counters;
  if (!has_interval(event)) {
    ++counters.bad_timestamps;
    return;
  }
  const auto duration_ns = static_cast<uint64_t>(event.end_ns - event.start_ns);
  if (is_own(event)) {
    ++counters.metric_kernels;
    counters.metric_kernels_ns += duration_ns;
    return;
  }
  CapturedPlace* const captured = captured_place_of(launch, event);
  const FrameId frame = captured != nullptr ? captured->frame : device_frame(event, launch.name);
  const NodeId node = captured != nullptr ? captured_paths_.node_of(*captured, launch, session.options().python_context)
                                          : CallingContextTree::instance().child(session.node_of(launch), frame);
  session.activity.add(event);
  session.count(node, MetricGroup::Device, duration_ns, event.bytes);
  if (session.options().trace)
    session.keep({event.start_ns, duration_ns, node, stream_track(event), event.correlation});
  if (event.kind == DeviceEventKind::Kernel) session.count_kernel(config_of(event, frame));
  if (event.kind == DeviceEventKind::Kernel || event.kind == DeviceEventKind::Graph)
    session.count_duration(frame, event);
  if (event.kind == DeviceEventKind::Kernel && session.samples_instructions())
    note_sampled_kernel(session, event, FunctionCubins::instance().crc(launch.cubin), node);
  if (captured != nullptr && captured->captured == nullptr) {
    ++counters.unknown_captures;
    tell_of_unknown_captures();
  }
  ++counter_of(counters, event.kind);
}

// Samples
// ----------------------------------------------------------------------------------------------------------------

// The hardware samples each multiprocessor once in a period: a kernel gets as many as it has kept busy, for as long as
// it ran while it was sampled.
void Recorder::note_sampled_kernel(const Session& session, const DeviceEvent& event, uint64_t cubin_crc, NodeId node) {
  if (multiprocessors_.empty())
    for (const CudaDevice& device : CudaDriver::mapped().devices())
      multiprocessors_.push_back(static_cast<uint64_t>(device.multiprocessors));
  const uint32_t* grid = &event.launch_config[4];
  const uint64_t blocks = uint64_t{grid[0]} * grid[1] * grid[2];
  const uint64_t busy = event.device < multiprocessors_.size() ? std::min(blocks, multiprocessors_[event.device]) : 1;
  const bool is_serialized = session.options().sampling.mode == SamplingMode::Serialized;
  const int64_t sampled_ns = SampledSpans::instance().overlap_ns(event.device, event.start_ns, event.end_ns);
  samples_of_line_[session.line()].add({
      .target = {session.slot(), node},
      .function = FrameTable::instance().intern_string(event.name != nullptr ? event.name : ""),
      .cubin_crc = cubin_crc,
      .correlation = is_serialized ? event.correlation : 0,
      .weight = static_cast<double>(sampled_ns) * static_cast<double>(busy),
  });
}

void Recorder::take_samples() {
  if (samples_of_line_.empty()) return;
  static const StringId own_kernel = FrameTable::instance().intern_string(value_kernel::kName);
  for (const PcSample& sample : pc_sampling::take())
    for (auto& [line, attribution] : samples_of_line_)
      if (sample.function != own_kernel) attribution.add(sample);
  if (samples_are_due_.exchange(false)) settle_samples();
}

bool Recorder::is_last_sampled(const Session& session) {
  const std::lock_guard work(work_mutex_);
  return samples_of_line_.size() == 1 && samples_of_line_.contains(session.line());
}

void Recorder::settle_samples() {
  for (auto& [line, attribution] : samples_of_line_)
    attribution.settle([this, line = line](auto&&... what) { give_samples(line, what...); });
}

void Recorder::end_samples(Session& session) {
  const auto found = samples_of_line_.find(session.line());
  if (found == samples_of_line_.end()) return;
  SampleAttribution& attribution = found->second;
  const bool is_last = !session.is_retired();
  if (is_last) attribution.give_up([&](auto&&... what) { give_samples(session.line(), what...); });
  attribution.forget(session.slot());
  if (is_last) samples_of_line_.erase(found);
}

void Recorder::give_samples(uint32_t line, const SampleTarget* target, const Code& code, const PcSample& sample,
                            uint64_t count, bool is_exact) {
  Session* session = target != nullptr ? sessions_[target->slot].get() : newest_on(line);
  if (session == nullptr) return;
  if (target != nullptr) return session->add_samples(target->node, code, sample, count, is_exact);
  auto& frames = FrameTable::instance();
  auto& tree = CallingContextTree::instance();
  const NodeId nobodys = tree.child(kRootNode, frames.intern(FrameKind::State, "<samples without a launch>"));
  const FrameId kernel = frames.intern(FrameKind::Kernel, frames.string(code.function));
  session->add_samples(tree.child(nobodys, kernel), code, sample, count, false);
}

FrameId Recorder::device_frame(const DeviceEvent& event, StringId wanted) {
  if (event.kind == DeviceEventKind::Graph)
    return FrameTable::instance().intern(FrameKind::Kernel, "<cuda graph " + std::to_string(event.graph) + ">",
                                         event.device);
  if (event.kind != DeviceEventKind::Kernel)
    return FrameTable::instance().intern(FrameKind::Memory, operation_name(event), event.device);
  const char* name = event.name != nullptr ? event.name : "(unnamed kernel)";
  auto& [text, frames] = kernel_frames_[name];
  if (text != name) {  // first sight, or the driver reused the address for another name
    text = name;
    frames.clear();
  }
  const auto [found, is_new] = frames.try_emplace({event.device, wanted}, kNone);
  if (is_new) {
    auto& table = FrameTable::instance();
    const bool fits = wanted != kNone && KernelNames::instance().fits(wanted, text);
    found->second = table.intern(FrameKind::Kernel, fits ? table.string(wanted) : text, event.device);
    if (fits) KernelNames::instance().describe(found->second, wanted);
  }
  return found->second;
}

uint32_t Recorder::host_track(ThreadContext& thread) {
  if (thread.track == kNone) {
    thread.track = static_cast<uint32_t>(tracks_.size());
    const std::string name = "thread " + std::to_string(thread.system_id);
    tracks_.push_back(
        {TrackKind::HostThread, kNone, kNone, thread.system_id, FrameTable::instance().intern_string(name)});
  }
  return thread.track;
}

// Of the whole process: a reader spreads ranges that overlap over several lanes.
uint32_t Recorder::range_track() {
  if (range_track_ == kNone) {
    range_track_ = static_cast<uint32_t>(tracks_.size());
    tracks_.push_back({TrackKind::Ranges, kNone, kNone, 0, FrameTable::instance().intern_string("ranges")});
  }
  return range_track_;
}

uint32_t Recorder::stream_track(const DeviceEvent& event) {
  const auto [found, is_new] =
      stream_tracks_.try_emplace({event.device, event.context, event.stream}, static_cast<uint32_t>(tracks_.size()));
  if (is_new) {
    const std::string name = "GPU " + std::to_string(event.device) + " stream " + std::to_string(event.stream);
    tracks_.push_back(
        {TrackKind::GpuStream, event.device, event.context, event.stream, FrameTable::instance().intern_string(name)});
  }
  return found->second;
}

void Recorder::flush_due_sessions() {
  const int64_t now = now_ns();
  for (uint32_t slot = 0; slot < kMaxSessions; ++slot) {
    if (sessions_[slot] == nullptr || now < next_flush_ns_[slot]) continue;
    Session& session = *sessions_[slot];
    add_graph_values();
    session.flush(tracks_, statistics_json(session));
    next_flush_ns_[slot] = now + int64_t{session.options().flush_interval_ms} * 1'000'000;
  }
}

ThreadTotals Recorder::thread_totals() {
  ThreadTotals totals;
  ThreadRegistry::instance().for_each([&](const ThreadContext& thread) {
    totals.own_ns += thread.own_ns.load(std::memory_order_relaxed);
    totals.dropped_events += thread.dropped.load(std::memory_order_relaxed);
  });
  return totals;
}

std::string Recorder::statistics_json(const Session& session) {
  const ThreadTotals totals = session.after.value_or(thread_totals());
  const SessionCounters& counters = session.counters;
  JsonObject statistics;
  statistics.put("launches", counters.launches)
      .put("kernels", counters.kernels)
      .put("copies", counters.copies)
      .put("sets", counters.sets)
      .put("scopes", counters.scopes)
      .put("samples", counters.samples)
      .put("markers", counters.markers)
      .put("metric_kernels", counters.metric_kernels)
      .put("metric_kernels_ns", counters.metric_kernels_ns)
      .put("unordered_values", counters.unordered_values)
      .put("graphs", counters.graphs)
      .put("unattributed_records", counters.unattributed)
      .put("unknown_captures", counters.unknown_captures)
      .put("late_records", counters.late)
      .put("bad_timestamps", counters.bad_timestamps)
      .put("dropped_events", totals.dropped_events - session.before.dropped_events)
      .put("refused_nodes", CallingContextTree::instance().refused())
      .put("refused_kernel_configs", session.refused_kernel_configs())
      .put("refused_samples", session.refused_samples())
      .put("own_ns", totals.own_ns - session.before.own_ns);
  if (session.writer().error() != 0) statistics.put("capture_error", std::strerror(session.writer().error()));
  JsonObject meta;
  meta.put("end_ns", session.ended_ns())
      .raw("statistics", statistics.text())
      .raw("gpu_busy_ns", session.activity.busy_json());
  if (session.options().backend != BackendChoice::Cpu) meta.raw("cuda", cuda_backend::description_json());
  if (session.samples_instructions()) meta.raw("sampling", pc_sampling::description_json());
  if (const std::string devices = cuda_backend::devices_json(); !devices.empty()) meta.raw("devices", devices);
  if (session.activity.first_ns() != 0)
    meta.put("gpu_first_ns", session.activity.first_ns()).put("gpu_last_ns", session.activity.last_ns());
  return meta.text();
}

// Fork
// -------------------------------------------------------------------------------------------------------------------

void Recorder::prepare_fork() {
  control_mutex_.lock();
  work_mutex_.lock();
  ThreadRegistry::instance().lock_for_fork();
  CallingContextTree::instance().lock_for_fork();
  device_values::lock_for_fork();
  pc_sampling::lock_for_fork();
  CubinStore::instance().lock_for_fork();
  FunctionCubins::instance().lock_for_fork();
  GraphRegistry::instance().lock_for_fork();
  StreamCaptures::instance().lock_for_fork();
  KernelNames::instance().lock_for_fork();
  MetricNames::instance().lock_for_fork();
  FrameTable::instance().lock_for_fork();
}

void Recorder::after_fork_in_parent() {
  FrameTable::instance().unlock_after_fork();
  MetricNames::instance().unlock_after_fork();
  KernelNames::instance().unlock_after_fork();
  StreamCaptures::instance().unlock_after_fork();
  GraphRegistry::instance().unlock_after_fork();
  FunctionCubins::instance().unlock_after_fork();
  CubinStore::instance().unlock_after_fork();
  pc_sampling::unlock_after_fork();
  device_values::unlock_after_fork();
  CallingContextTree::instance().unlock_after_fork();
  ThreadRegistry::instance().unlock_after_fork();
  work_mutex_.unlock();
  control_mutex_.unlock();
}

void Recorder::after_fork_in_child() {
  for (auto* mask :
       {&recording_state.active, &recording_state.existing, &recording_state.python, &recording_state.trace})
    mask->store(0);
  for (auto& session : sessions_) {
    if (session != nullptr) session->abandon();
    session.reset();
  }
  new (&device_flush_mutex_) std::mutex;
  retired_.store(0);
  slot_of_line_.fill(kNone);
  (void)consumer_.release();  // that thread does not exist here
  consumer_signal.reset();
  ending_signal_.store(0);
  cuda_backend::after_fork_in_child();
  device_values::after_fork_in_child();
  pc_sampling::after_fork_in_child();
  LaunchGate::instance().after_fork_in_child();
  launches_.clear();
  captured_paths_.clear();
  samples_of_line_.clear();
  tracks_.clear();
  range_track_ = kNone;
  stream_tracks_.clear();
  ThreadRegistry::instance().keep_only(ThreadContext::current_if_any());
  after_fork_in_parent();
  GraphRegistry::instance().clear();
  StreamCaptures::instance().clear();
}

}  // namespace bragg
