// What the program's threads and the devices tell is taken here, and what is said of a session.
#include "data/recorder.h"

#include <algorithm>

#include <utility>

#include "backends/cuda/buffer_pool.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/samples/pc_sampling.h"
#include "backends/cuda/values/device_values.h"
#include "context/loaded_code.h"
#include "context/thread_registry.h"
#include "data/json.h"
#include "data/overhead.h"

namespace bragg {
namespace {

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
Session* Recorder::owner(uint32_t slot) {
  if (sessions_[slot] != nullptr) return sessions_[slot].get();
  return newest_on(recording_state.line_of_slot[slot].load(std::memory_order_relaxed));
}

Session* Recorder::newest_on(uint32_t line) {
  const uint32_t slot = line < kMaxSessions ? slot_of_line_[line] : kNone;
  return slot != kNone ? sessions_[slot].get() : nullptr;
}

void Recorder::step() {
  for (size_t i = 0; i < BufferPool::kMaxUnread / cuda_backend::kBuffersAtOnce && step_some(); ++i) {
  }
}

bool Recorder::step_some() {
  std::vector<ArrivedValue> arrived;
  const auto before_records = [&] {
    arrived = device_values::take_arrived();  // so that the launches of the graphs that read them are in the rings
    drain_rings();
  };
  clock_steps_.note(clock_steps_ns(), now_ns());
  const bool has_more = cuda_backend::consume(before_records, [this](DeviceEvent event) {
    clock_steps_.correct(event.start_ns, event.end_ns, clock_steps_.empty() ? 0 : now_ns());
    take_device_event(event);
  });
  for (const ArrivedValue& value : arrived) take_arrived_value(value);
  take_samples();
  for_sessions(recording_state.trace.load(), [this](Session& session) {
    if (!session.wants_flush()) return;
    if (session.is_behind()) return session.drop_slices();
    session.flush(tracks_, facts_of(session));
    if (threads_ != nullptr) threads_->writer_signal.wake();
  });
  return has_more;
}

void Recorder::drain_rings() {
  looked_before_ns_ = std::exchange(looks_at_ns_, now_ns());
  uint32_t n_events = 0;
  ThreadRegistry::instance().for_each([&, this](ThreadContext& thread) {
    const bool exited = thread.exited.load(std::memory_order_acquire);
    n_events += thread.ring.drain([&](const Event& event) { take_event(thread, event); });
    if (exited) ThreadRegistry::instance().release(&thread);
  });
  if (n_events == 0) return;
  cpu_ = cpu_times();
  cpu_at_ns_ = looks_at_ns_;
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
  });
  const auto& tree = CallingContextTree::instance();
  totals.refused_nodes = tree.refused();
  totals.too_deep += tree.too_deep();
  totals.other_names = FrameTable::instance().other_names();
  totals.forgotten_copies = copy_waits_.forgotten();
  return totals;
}

// Those that did come, without a launch, and those that CUPTI tells that it has dropped are counted as such.
uint64_t Recorder::missing_records(const Session& session) {
  const uint64_t missing = session.missing_records();
  return missing - std::min(missing, session.counters.unattributed + cuda_backend::dropped_records());
}

JsonObject Recorder::facts_of(const Session& session) {
  const ThreadTotals totals = session.after.value_or(thread_totals());
  const SessionCounters& counters = session.counters;
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
      .put("metric_kernels", counters.metric_kernels)
      .put("metric_kernels_ns", counters.metric_kernels_ns)
      .put("unordered_values", counters.unordered_values)
      .put("graphs", counters.graphs)
      .put("unattributed_records", counters.unattributed)
      .put("unknown_captures", counters.unknown_captures)
      .put("late_records", counters.late)
      .put("duplicate_records", counters.duplicates)
      .put("missing_records", missing_records(session))
      .put("dropped_slices", counters.dropped_slices)
      .put("bad_timestamps", counters.bad_timestamps)
      .put("dropped_events", totals.dropped_events - session.before.dropped_events)
      .put("refused_nodes", totals.refused_nodes - session.before.refused_nodes)
      .put("too_deep", totals.too_deep - session.before.too_deep)
      .put("other_names", totals.other_names - session.before.other_names)
      .put("forgotten_copies", totals.forgotten_copies - session.before.forgotten_copies)
      .put("refused_kernel_configs", session.refused_kernel_configs())
      .put("refused_inputs", session.refused_inputs())
      .put("refused_samples", session.refused_samples())
      .put("interleaved_scopes", totals.interleaved_scopes - session.before.interleaved_scopes)
      .put("cut_native_paths", totals.cut_paths - session.before.cut_paths);
  const ActivityTotals activity = session.activity.totals();
  JsonObject meta;
  meta.raw("statistics", statistics.text())
      .raw("gpu_busy_ns", activity.busy_json)
      .raw("overhead", overhead_json(session, totals, activity.fed_ns));
  if (session.options().backend != BackendChoice::Cpu) meta.raw("cuda", cuda_backend::description_json());
  if (session.options().native_context) meta.raw("native_files", native_files_json());
  if (const std::string steps = clock_steps_.json(session.started_ns()); !steps.empty()) meta.raw("clock_steps", steps);
  if (session.samples_instructions()) meta.raw("sampling", pc_sampling::description_json());
  if (const std::string devices = cuda_backend::devices_json(); !devices.empty()) meta.raw("devices", devices);
  if (session.activity.first_ns() != 0)
    meta.put("gpu_first_ns", session.activity.first_ns()).put("gpu_last_ns", session.activity.last_ns());
  return meta;
}

}  // namespace bragg
