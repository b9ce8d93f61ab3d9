#include "backends/cuda/cuda.h"

#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

#include "backends/cuda/activity_walker.h"
#include "backends/cuda/buffer_dump.h"
#include "backends/cuda/cuda_attachment.h"
#include "backends/cuda/cuda_state.h"
#include "backends/cuda/driver/cuda_driver.h"
#include "backends/cuda/launch/api_calls.h"
#include "backends/cuda/launch/cuda_callbacks.h"
#include "backends/cuda/launch/launch_callbacks.h"
#include "backends/graph_registry.h"
#include "context/stream_captures.h"

namespace bragg::cuda_backend {
void start(const std::string& candidates) {
  Backend& self = backend();
  const std::lock_guard lock(self.mutex);
  if (self.state.load() == State::Attached && uses_gate()) follow_calls_for_sampling(self);
  if (self.state.load() == State::Attached || self.state.load() == State::Waiting) return;
  self.candidates = candidates;
  if (attach_if_up(self) || self.state.load() == State::Failed) return;
  self.state.store(State::Waiting);
  self.seen_down = std::chrono::steady_clock::now();
  setenv("CUDA_INJECTION64_PATH", own_library_path().c_str(), 0);  // 0: another tool's value stays
}

void on_cuda_initialized() {
  Backend& self = backend();
  const std::lock_guard lock(self.mutex);
  if (self.state.load() == State::Waiting) attach(self);
}

void poll() {
  Backend& self = backend();
  record_peer_copies_if_any(self);
  if (self.state.load() != State::Waiting) return;
  const std::lock_guard lock(self.mutex);
  if (self.state.load() != State::Waiting) return;
  const auto now = std::chrono::steady_clock::now();
  const bool has_worked = CudaDriver::mapped().n_primary_contexts() > 0;
  if (!attach_if_up(self)) {
    self.seen_down = now;
    return;
  }
  if (has_worked)
    self.missed_start_ns.store(static_cast<uint64_t>(std::chrono::nanoseconds(now - self.seen_down).count()));
  apply_collecting(self, recording());
}

void set_collecting(bool on, ApiLevel api_level) {
  Backend& self = backend();
  const std::lock_guard lock(self.mutex);
  self.api_level = api_level;
  apply_collecting(self, on);
}

void set_graph_level(bool wanted) {
  Backend& self = backend();
  const std::lock_guard lock(self.mutex);
  self.wants_whole_graphs.store(wanted);
  apply_graph_level(self);
}

void follow_memory() {
  Backend& self = backend();
  const std::lock_guard lock(self.mutex);
  if (self.state.load() == State::Attached) follow_calls_for_memory(self);
}

void reclaim_records() {
  Backend& self = backend();
  const std::lock_guard lock(self.mutex);
  if (self.state.load() != State::Attached || !self.collecting || self.activity().is_shared()) return;
  (void)self.cupti.register_callbacks(on_buffer_requested, on_buffer_completed);
  self.collecting = false;
  apply_collecting(self, true);
}

NoKernelRecords::NoKernelRecords() {
  Backend& self = backend();
  const std::lock_guard lock(self.records_mutex);
  self.has_launch_without_record = true;
  if (self.collecting) (void)self.activity().disable(cupti::Kind::ConcurrentKernel);
}

NoKernelRecords::~NoKernelRecords() {
  Backend& self = backend();
  const std::lock_guard lock(self.records_mutex);
  self.has_launch_without_record = false;
  if (self.collecting) (void)self.activity().enable(cupti::Kind::ConcurrentKernel);
}

bool may_flush_in_background() {
  const Backend& self = backend();
  if (self.state.load() != State::Attached) return true;
  if (self.records_peer_copies.load()) return false;
  return self.activity().get(cupti::Attribute::HardwareTrace).value_or(0) == 0;
}

void flush(bool is_forced) {
  Backend& self = backend();
  if (self.state.load() != State::Attached) return;
  // Nothing to do about a refusal; the records come with the next flush.
  (void)self.cupti.flush_all(is_forced ? cupti::kFlushForced : 0);
}

void detach() {
  Backend& self = backend();
  const std::lock_guard lock(self.mutex);
  apply_collecting(self, false);
  if (launch_watch.traces_graphs.exchange(false)) (void)self.activity().disable(cupti::Kind::GraphTrace);
  if (self.state.load() == State::Attached) self.cupti.unsubscribe(self.subscriber);
  self.needs_nodes.store(false);
  GraphRegistry::instance().clear();
  StreamCaptures::instance().clear();
  self.subscriber = nullptr;
  {
    const std::lock_guard contexts_lock(self.contexts_mutex);
    self.contexts.clear();  // nobody tells any more when they end
    launch_watch.context_changes.fetch_add(1, std::memory_order_relaxed);
  }
  self.state.store(State::Off);
  self.missed_start_ns.store(0);
  self.dropped_records.store(0);
  self.foreign_records.store(0);
  self.unread_bytes.store(0);
}

void lock_for_fork() {
  Backend& self = backend();
  self.contexts_mutex.lock();
  self.clock_mutex.lock();
  self.buffers.lock_for_fork();
}

void unlock_after_fork() {
  Backend& self = backend();
  self.buffers.unlock_after_fork();
  self.clock_mutex.unlock();
  self.contexts_mutex.unlock();
}

void after_fork_in_child() {
  Backend& self = backend();
  self.unusable = self.unusable || self.state.load() == State::Attached;
  new (&self.mutex) std::mutex;  // held while CUPTI is called, which may hang
  new (&self.records_mutex) std::mutex;
  self.contexts.clear();
  self.buffers.forget_all();
  self.collecting = false;
  api_calls::forget();
  launch_watch.traces_graphs.store(false);
  self.needs_nodes.store(false);
  self.state.store(State::Off);
}

void gather() { backend().gathered = backend().buffers.take_completed(kBuffersAtOnce); }

bool take(const std::function<void(const DeviceEvent&)>& take) {
  Backend& self = backend();
  const std::vector<ActivityBuffer> completed = std::exchange(self.gathered, {});
  for (const ActivityBuffer& buffer : completed) {
    if (!self.dump_directory.empty())
      dump_buffer(self.dump_directory, {buffer.data, buffer.valid_bytes}, self.cupti.version);
    const WalkResult walked =
        walk_activity(buffer.data, buffer.valid_bytes, self.cupti.version, self.activity().next_record(), take);
    self.foreign_records.fetch_add(walked.foreign_records, std::memory_order_relaxed);
    self.unread_bytes.fetch_add(walked.unread_bytes, std::memory_order_relaxed);
    self.buffers.recycle(buffer);
  }
  return completed.size() == kBuffersAtOnce;
}

uint64_t dropped_records() { return backend().dropped_records.load(std::memory_order_relaxed); }

State state() { return backend().state.load(); }

const CuptiLibrary& cupti_library() { return backend().cupti; }

std::vector<KnownContext> contexts() {
  const std::lock_guard lock(backend().contexts_mutex);
  return backend().contexts;
}

}  // namespace bragg::cuda_backend
