// A source that follows who holds memory of GPUs: what those of all allocators share.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/event_source.h"
#include "backends/gpu_memory/held_memory.h"

namespace bragg {

class FollowedMemory : public EventSource {
 public:
  struct Names {
    const char* facts;                                                        // in META
    std::array<std::pair<const char*, const char*>, kMemoryMetrics> metrics;  // with their units
    const char* allocated_track;
    const char* reserved_track;  // nullptr: nothing is reserved beyond what is allocated
  };

  void collect(const Collecting&) override {}  // what is freed in a pause is no longer held after it
  void begin_phase(const SourceOptions& options) override;
  void end_phase(const SourceOptions& options) override;
  void drain(int64_t, bool) override {}
  void gather() override;
  bool take(EventSink& sink) override;
  void describe(JsonObject& meta, const SourceOptions& options) const override;

  void lock_for_fork() override { mutex_.lock(); }
  void unlock_after_fork() override { mutex_.unlock(); }
  void after_fork_in_child() override;  // a child cannot use its parent's GPUs

 protected:
  explicit FollowedMemory(const Names& names) : names_(names) {}
  ~FollowedMemory() = default;

  // Threads: any that takes memory or gives it back. What it does is missed unless it is followed.
  [[nodiscard]] bool is_followed() noexcept {
    if (is_followed_.load(std::memory_order_relaxed)) return true;
    has_missed_.store(true, std::memory_order_relaxed);
    return false;
  }

  // Lock held.
  virtual void before_phase() {}
  virtual void before_phase_end() {}

  mutable std::mutex mutex_;  // of the two below

 private:
  struct Tracks {
    TrackId allocated, reserved;
  };

  [[nodiscard]] static ContextNodes unknown();
  void tell(const MemoryChange& change, EventSink& sink);
  const Tracks& tracks_of(uint32_t device, EventSink& sink);

  const Names& names_;
  std::atomic<bool> is_followed_{false};
  std::atomic<bool> has_missed_{false};  // since a phase was followed
  const ContextNodes unknown_ = unknown();

 protected:
  HeldMemory held_{unknown_};
  std::string reason_;  // why nothing is followed; "": it is

 private:
  // Consumer side.
  std::vector<MemoryChange> changes_;
  std::vector<MemoryPoint> points_;
  std::map<uint32_t, Tracks> tracks_;
  std::array<MetricId, kMemoryMetrics> metrics_{};
  bool has_metrics_ = false;
};

}  // namespace bragg
