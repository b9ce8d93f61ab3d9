// What the parts of the CUDA backend share.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/buffer_pool.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/driver/cupti_activity.h"
#include "backends/cuda/launch/launch_watch.h"
#include "data/clock_readings.h"

namespace bragg::cuda_backend {

struct Backend {
  std::mutex mutex;  // guards attachment; never held while application threads can call back
  std::atomic<State> state{State::Off};
  std::string reason;
  std::string candidates;
  CuptiLibrary cupti;
  cupti::Subscriber subscriber = nullptr;
  std::deque<CuptiActivity> activities{CuptiActivity{}};  // a subscription each: CUPTI's threads may use a former one
  std::atomic<const CuptiActivity*> current_activity{&activities.front()};
  std::mutex records_mutex;  // of which records are produced, while that changes
  bool has_launch_without_record = false;
  std::atomic<bool> collecting{false};
  std::atomic<bool> records_peer_copies{false};
  std::atomic<uint32_t> n_contexts{0};  // that exist
  ApiLevel api_level = ApiLevel::Off;   // wanted while collecting
  bool unusable = false;                // forked from a process that had CUDA up
  BufferPool buffers;
  std::chrono::steady_clock::time_point seen_down;  // when CUDA was last seen not to be up; while it is polled
  std::atomic<uint64_t> missed_start_ns{0};         // the GPU worked before attachment, at most so long
  std::vector<ActivityBuffer> gathered;             // consumer side
  std::atomic<uint64_t> dropped_records{0};
  std::atomic<uint64_t> foreign_records{0};  // of kinds that another tool asked for: nothing of ours is missing
  std::atomic<uint64_t> unread_bytes{0};
  std::atomic<bool> wants_whole_graphs{false};
  std::atomic<bool> needs_nodes{false};              // they cannot be any more, until detachment
  std::atomic<uint64_t> foreign_buffers{0};          // another tool's: it lost what was in them, not we
  std::atomic<const std::string*> devices{nullptr};  // asked for once
  std::string dump_directory;                        // BRAGG_DUMP_BUFFERS; empty: buffers are not kept
  std::mutex clock_mutex;
  ClockReadings<1> clock;  // of CUPTI's records, beside the recorder's
  std::mutex contexts_mutex;
  std::vector<KnownContext> contexts;

  [[nodiscard]] const CuptiActivity& activity() const { return *current_activity.load(std::memory_order_acquire); }
};

[[nodiscard]] inline Backend& backend() {
  static Backend& instance = *new Backend;  // CUPTI may call until the process is gone
  return instance;
}

}  // namespace bragg::cuda_backend
