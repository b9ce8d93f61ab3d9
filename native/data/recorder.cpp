// Takes what the program's threads and the devices tell, and describes sessions.
#include "data/recorder.h"

#include <algorithm>

#include <utility>

#include "context/loaded_code.h"
#include "context/thread_registry.h"
#include "data/json.h"
#include "data/overhead.h"

namespace bragg {
namespace {

constexpr int kMostSteps = 32;  // what sources hold unread at most; more comes while this continues

std::string native_files_json() {
  JsonObject files;
  for (const CodeFile& file : LoadedCode::instance().files())
    files.raw(file.name, JsonObject().put("path", file.path).put("build_id", file.build_id).text());
  return files.text();
}

}  // namespace

Recorder& Recorder::instance() {
  static Recorder& recorder = *new Recorder;  // driver threads may outlive static destruction
  return recorder;
}

// Of an event: a thread may have taken its time to write it, until its phase had ended.
Phase* Recorder::owner(uint32_t slot) {
  if (phases_[slot] != nullptr) return phases_[slot].get();
  return newest_on(recording_state.session_of_slot[slot].load(std::memory_order_relaxed));
}

Phase* Recorder::newest_on(uint32_t session) {
  const uint32_t slot = session < kMaxSessions ? slot_of_session_[session] : kNone;
  return slot != kNone ? phases_[slot].get() : nullptr;
}

void Recorder::step() {
  for (int i = 0; i < kMostSteps && step_some(); ++i) {
  }
}

bool Recorder::step_some() {
  clock_steps_.note(clock_steps_ns(), now_ns());
  if (system_clocks_.is_due(now_ns())) read_system_clocks(system_clocks_);
  sources_.for_each([](EventSource& source) { source.gather(); });
  looked_before_ns_ = std::exchange(looks_at_ns_, now_ns());
  bool has_more = false;
  sources_.for_each([&](EventSource& source) {
    taken_ = &source;
    const uint64_t n_events = events_taken_;
    has_more |= source.take(*this);
    if (events_taken_ == n_events) return;
    cpu_ = cpu_times();
    cpu_at_ns_ = looks_at_ns_;
    for_phases(recording_state.existing.load(), [this](Phase& phase) {
      if (!phase.ready_before_work_ns && phase.work.total_ns() != 0) phase.ready_before_work_ns = cpu_.main_ready_ns;
    });
  });
  if (!samples_of_session_.empty() && samples_are_due_.exchange(false)) settle_samples();
  for_phases(recording_state.trace.load(), [this](Phase& phase) {
    if (!phase.wants_flush()) return;
    if (phase.is_behind()) return phase.drop_slices();
    phase.flush(tracks_, facts_of(phase));
    if (threads_ != nullptr) threads_->writer_signal.wake();
  });
  return has_more;
}

void Recorder::take(const DeviceEvent& event) {
  DeviceEvent corrected = event;
  clock_steps_.correct(corrected.start_ns, corrected.end_ns, clock_steps_.empty() ? 0 : now_ns());
  take_device_event(corrected);
}

ThreadTotals Recorder::thread_totals() {
  ThreadTotals totals;
  totals.cpu = cpu_;
  totals.cpu_at_ns = cpu_at_ns_;
  ThreadRegistry::instance().for_each([&](const ThreadContext& thread) {
    thread.cost.add_to(totals.cost);
    totals.dropped_events += thread.dropped.load(std::memory_order_relaxed);
    totals.interleaved_scopes += thread.interleaved_scopes.load(std::memory_order_relaxed);
    totals.cut_paths += thread.cut_paths.load(std::memory_order_relaxed);
    totals.too_deep += thread.too_deep.load(std::memory_order_relaxed);
    totals.autograd_nodes += thread.autograd_nodes.load(std::memory_order_relaxed);
    totals.evaluated_nodes += thread.evaluated_nodes.load(std::memory_order_relaxed);
  });
  const auto& tree = CallingContextTree::instance();
  totals.refused_nodes = tree.refused();
  totals.too_deep += tree.too_deep();
  totals.other_names = FrameTable::instance().other_names();
  totals.forgotten_copies = copy_waits_.forgotten();
  return totals;
}

// Records that came without a launch, and records that a source says it dropped, are counted elsewhere.
uint64_t Recorder::missing_records(const Phase& phase) {
  const uint64_t missing = phase.missing_records();
  return missing - std::min(missing, phase.counters.unattributed + sources_.dropped_records());
}

JsonObject Recorder::last_facts_of(Phase& phase) {
  read_system_clocks(system_clocks_);
  return facts_of(phase);
}

JsonObject Recorder::facts_of(Phase& phase) {
  const ThreadTotals totals = phase.after.value_or(thread_totals());
  const PhaseCounters& counters = phase.counters;
  JsonObject statistics;
  statistics.put("launches", counters.launches)
      .put("failed_launches", counters.failed_launches)
      .put("kernels", counters.kernels)
      .put("copies", counters.copies)
      .put("sets", counters.sets)
      .put("scopes", counters.scopes)
      .put("api_calls", counters.api_calls)
      .put("samples", counters.samples)
      .put("markers", counters.markers)
      .put("autograd_nodes", totals.autograd_nodes - phase.before.autograd_nodes)
      .put("evaluated_nodes", totals.evaluated_nodes - phase.before.evaluated_nodes)
      .put("metric_kernels", counters.metric_kernels)
      .put("metric_kernels_ns", counters.metric_kernels_ns)
      .put("unordered_values", counters.unordered_values)
      .put("graphs", counters.graphs)
      .put("unattributed_records", counters.unattributed)
      .put("unknown_captures", counters.unknown_captures)
      .put("late_records", counters.late)
      .put("duplicate_records", counters.duplicates)
      .put("missing_records", missing_records(phase))
      .put("dropped_slices", counters.dropped_slices)
      .put("bad_timestamps", counters.bad_timestamps)
      .put("dropped_events", totals.dropped_events - phase.before.dropped_events)
      .put("refused_nodes", totals.refused_nodes - phase.before.refused_nodes)
      .put("too_deep", totals.too_deep - phase.before.too_deep)
      .put("other_names", totals.other_names - phase.before.other_names)
      .put("forgotten_copies", totals.forgotten_copies - phase.before.forgotten_copies)
      .put("refused_kernel_configs", phase.refused_kernel_configs())
      .put("refused_inputs", phase.refused_inputs())
      .put("refused_samples", phase.refused_samples())
      .put("interleaved_scopes", totals.interleaved_scopes - phase.before.interleaved_scopes)
      .put("cut_native_paths", totals.cut_paths - phase.before.cut_paths);
  const ActivityTotals activity = phase.activity.totals();
  JsonObject meta;
  meta.raw("statistics", statistics.text())
      .raw("gpu_busy_ns", activity.busy_json)
      .raw("overhead", overhead_json(phase, totals, activity.fed_ns));
  sources_.for_each(phase.options().uses_devices,
                    [&](const EventSource& source) { source.describe(meta, phase.options().of_sources); });
  if (phase.options().native_context) meta.raw("native_files", native_files_json());
  if (const std::string steps = clock_steps_.json(phase.started_ns()); !steps.empty()) meta.raw("clock_steps", steps);
  meta.raw("clocks", system_clocks_.json());
  if (phase.activity.first_ns() != 0)
    meta.put("gpu_first_ns", phase.activity.first_ns()).put("gpu_last_ns", phase.activity.last_ns());
  return meta;
}

}  // namespace bragg
