// Full buffers on their way to the tool: CUPTI's own worker thread hands each over once all its records are complete.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "backends/cuda/driver/cupti_abi.h"

namespace bragg::fake {

class Sinks;

struct Buffer {
  const Sinks* owner = nullptr;
  uint8_t* data = nullptr;
  size_t size_bytes = 0;
  size_t used_bytes = 0;
  size_t records = 0;
  size_t max_records = 0;    // 0: as many as fit
  uint64_t complete_ns = 0;  // when the last of its records is complete; 0: to be delivered at once

  [[nodiscard]] bool has_room(size_t record_bytes) const {
    return used_bytes + record_bytes <= size_bytes && (max_records == 0 || records < max_records);
  }
};

// Threads: any.
class Delivery {
 public:
  void set_period_ms(uint32_t period_ms);

  void add(const Buffer& buffer);
  // Returns when the tool has `buffers` and every other complete one. `everything`: those with unfinished work too,
  // whose ends become 0.
  void flush(const std::vector<Buffer>& buffers, bool everything);
  // Cheap: called after each driver call.
  void time_passed(uint64_t now_ns) noexcept {
    if (now_ns >= next_ns_.load(std::memory_order_relaxed)) wake();
  }
  [[nodiscard]] static bool is_worker() noexcept;

 private:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  void wake() noexcept;
  void rouse_worker();
  [[noreturn]] void work();
  void sleep(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] std::vector<Buffer> take_complete();
  void deliver(const std::vector<Buffer>& buffers);

  std::mutex mutex_;
  std::condition_variable woken_;
  std::condition_variable delivered_;
  std::vector<Buffer> waiting_;
  std::atomic<uint64_t> next_ns_{kNever};  // when the first waiting buffer is complete
  uint32_t period_ms_ = 0;
  uint64_t batches_begun_ = 0;  // what the worker took to deliver
  uint64_t batches_done_ = 0;
  bool worker_runs_ = false;
};

}  // namespace bragg::fake
