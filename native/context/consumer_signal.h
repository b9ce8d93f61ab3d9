// Wakes the consumer thread from anywhere: async-signal-safe, and without a lock.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

namespace bragg {

class ConsumerSignal {
 public:
  void wake() noexcept {
    if (pending_.exchange(1, std::memory_order_acq_rel) == 0)
      syscall(SYS_futex, &pending_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

  // Until woken, or somewhat earlier. By the monotonic clock: one that is set back would make it wait for hours.
  void wait_ms(uint32_t timeout_ms) noexcept {
    const timespec timeout{.tv_sec = timeout_ms / 1000, .tv_nsec = int64_t{timeout_ms % 1000} * 1'000'000};
    syscall(SYS_futex, &pending_, FUTEX_WAIT_PRIVATE, 0, &timeout, nullptr, 0);
    // An exchange: what was recorded before a wake that found the flag set is seen by the next look.
    pending_.exchange(0, std::memory_order_acq_rel);
  }

  void reset() noexcept { pending_.store(0, std::memory_order_relaxed); }  // in a forked child

 private:
  std::atomic<uint32_t> pending_{0};
  static_assert(sizeof pending_ == sizeof(uint32_t));
};

inline ConsumerSignal consumer_signal;

}  // namespace bragg
