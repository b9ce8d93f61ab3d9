#include "backends/gpu_memory/followed_memory.h"

#include <new>

#include "context/clock.h"
#include "context/metric_names.h"
#include "context/thread_context.h"

namespace bragg {

ContextNodes FollowedMemory::unknown() {
  const FrameId frame = intern_frame(FrameKind::State, "[allocated before the recording]");
  const NodeId node = CallingContextTree::instance().child(kRootNode, frame);
  return {node, node};
}

void FollowedMemory::begin_phase(const SourceOptions& options) {
  if (!options.memory) return;
  const std::lock_guard lock(mutex_);
  if (has_missed_.exchange(false) && !held_.is_wanted()) held_.forget();
  before_phase();
  held_.begin_phase(options.phase, now_ns());
  is_followed_.store(true);
}

void FollowedMemory::end_phase(const SourceOptions& options) {
  if (!options.memory) return;
  const std::lock_guard lock(mutex_);
  before_phase_end();
  held_.end_phase(options.phase);
  is_followed_.store(held_.is_wanted());
}

void FollowedMemory::gather() {
  const std::lock_guard lock(mutex_);
  for (const MemoryChange& change : held_.take_changes()) changes_.push_back(change);
  for (const MemoryPoint& point : held_.take_points(now_ns())) points_.push_back(point);
}

bool FollowedMemory::take(EventSink& sink) {
  for (const MemoryChange& change : std::exchange(changes_, {})) tell(change, sink);
  for (const MemoryPoint& point : std::exchange(points_, {})) {
    const Tracks& tracks = tracks_of(point.device, sink);
    sink.take(CounterSample{tracks.allocated, point.time_ns, static_cast<double>(point.allocated)});
    if (names_.reserved_track != nullptr)
      sink.take(CounterSample{tracks.reserved, point.time_ns, static_cast<double>(point.reserved)});
  }
  return false;
}

void FollowedMemory::describe(JsonObject& meta, const SourceOptions& options) const {
  if (!options.memory) return;
  JsonObject json;
  const std::lock_guard lock(mutex_);
  if (!reason_.empty()) json.put("reason", reason_);
  held_.describe(json, options.phase);
  meta.raw(names_.facts, json.text());
}

void FollowedMemory::after_fork_in_child() {
  new (&mutex_) std::mutex;
  held_ = HeldMemory(unknown_);  // known since before the fork: names are locked here
  is_followed_.store(false);
  changes_.clear();
  points_.clear();
  tracks_.clear();
}

void FollowedMemory::tell(const MemoryChange& change, EventSink& sink) {
  if (!std::exchange(has_metrics_, true))
    for (size_t i = 0; i < kMemoryMetrics; ++i)
      metrics_[i] = MetricNames::instance().intern(names_.metrics[i].first, names_.metrics[i].second,
                                                   MetricKind::Inclusive, false);
  ArrivedValue value;
  value.target.shadow = change.nodes.shadow;
  value.target.python = change.nodes.python;
  value.target.mask = static_cast<uint16_t>(1u << change.phase);
  value.target.metric = metrics_[static_cast<size_t>(change.metric)];
  value.target.is_float = false;
  value.bits = static_cast<uint64_t>(change.delta);
  if (value.target.metric != MetricId::None) sink.take(value);
}

const FollowedMemory::Tracks& FollowedMemory::tracks_of(uint32_t device, EventSink& sink) {
  const auto [entry, is_new] = tracks_.try_emplace(device);
  if (is_new) {
    entry->second.allocated = sink.add_counter(names_.allocated_track, "B", device);
    if (names_.reserved_track != nullptr) entry->second.reserved = sink.add_counter(names_.reserved_track, "B", device);
  }
  return entry->second;
}

}  // namespace bragg
