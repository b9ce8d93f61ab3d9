// Wakes the consumer thread from anywhere: sem_post is async-signal-safe and takes no lock.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

namespace bragg {

class ConsumerSignal {
 public:
  ConsumerSignal() noexcept { sem_init(&semaphore_, 0, 0); }

  void wake() noexcept {
    if (!pending_.exchange(true, std::memory_order_acq_rel)) sem_post(&semaphore_);
  }

  void wait_ms(uint32_t timeout_ms) noexcept {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += int64_t{timeout_ms} * 1'000'000;
    until.tv_sec += until.tv_nsec / 1'000'000'000;
    until.tv_nsec %= 1'000'000'000;
    while (sem_timedwait(&semaphore_, &until) != 0 && errno == EINTR) {
    }
    // An exchange, so that what was recorded before a wake that was not posted is seen by the look that follows.
    pending_.exchange(false, std::memory_order_acq_rel);
  }

  void reset() noexcept {  // in a forked child
    sem_init(&semaphore_, 0, 0);
    pending_.store(false, std::memory_order_relaxed);
  }

 private:
  sem_t semaphore_{};
  std::atomic<bool> pending_{false};
};

inline ConsumerSignal consumer_signal;

}  // namespace bragg
