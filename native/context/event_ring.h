// Single-producer single-consumer ring of event records: application thread -> consumer thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "context/event.h"

namespace bragg {

// Threads: `claim`, `publish` and `push` from the owning thread, `drain` from the consumer.
class Ring {
 public:
  static constexpr uint32_t kCapacity = 1u << 14;  // 512 KB a thread: 8 ms of scopes back to back at 1 us each

  // Where the next event goes, until `publish`. nullptr: the ring is full.
  [[nodiscard]] Event* claim() noexcept {
    const uint32_t head = head_.load(std::memory_order_relaxed);
    if (head - cached_tail_ == kCapacity) {
      cached_tail_ = tail_.load(std::memory_order_acquire);
      if (head - cached_tail_ == kCapacity) return nullptr;
    }
    return &events_[head % kCapacity];
  }
  void publish() noexcept { head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  [[nodiscard]] bool push(const Event& event) noexcept {
    Event* const next = claim();
    if (next == nullptr) return false;
    *next = event;
    publish();
    return true;
  }

  // True once per half ring: the moment to wake the consumer.
  [[nodiscard]] bool reached_half() const noexcept {
    return head_.load(std::memory_order_relaxed) % (kCapacity / 2) == 0;
  }

  template <class Consume>
  uint32_t drain(Consume&& consume) {
    const uint32_t head = head_.load(std::memory_order_acquire);
    const uint32_t tail = tail_.load(std::memory_order_relaxed);
    for (uint32_t i = tail; i != head; ++i) consume(events_[i % kCapacity]);
    tail_.store(head, std::memory_order_release);
    return head - tail;
  }

  [[nodiscard]] bool empty() const noexcept {
    return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_acquire);
  }

 private:
  alignas(64) std::atomic<uint32_t> head_{0};
  uint32_t cached_tail_ = 0;
  alignas(64) std::atomic<uint32_t> tail_{0};
  alignas(64) std::array<Event, kCapacity> events_;
};

}  // namespace bragg
