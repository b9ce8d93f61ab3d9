// Single-producer single-consumer ring of event records: application thread -> consumer thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "context/calling_context_tree.h"
#include "context/recording_state.h"

namespace bragg {

enum class EventKind : uint8_t {
  Launch,     // a driver call that will have device records with this correlation id
  Captured,   // it has none: it became a node of a graph; detail 1: an OwnLaunch
  Failed,     // it has none: the driver refused it; detail 1: an OwnLaunch
  LaunchEnd,  // its return; trace only
  OwnLaunch,  // a Launch of a kernel of ours
  Scope,      // a scope or operator that ended: [start_ns, end_ns)
  ApiCall,    // likewise a call of the GPU's API
  Sample,     // a host sample: end_ns - start_ns is its weight
  Mark,       // a moment on this thread
  Range,      // [start_ns, end_ns) of the process: it may have started on another thread, and overlaps what it likes
  Value,      // of a metric of the program
  Input,      // an input of an operator, which another operator made
};

struct Event {
  EventKind kind;
  uint8_t detail;  // Launch: 1 if several device records may follow; LaunchEnd: index of the driver call; ApiCall: a
                   // cupti::Waiting
  uint16_t mask;   // sessions that were active
  uint32_t correlation;  // Value: the metric; ApiCall: of the launch in it, or 0; Input: its number
  NodeId shadow;
  NodeId python;
  int64_t start_ns;  // Launch: 1 + the kernel's name, 0 if it goes by its symbol; Value: the bits of the value; Input:
                     // the ContextNodes of the operator that made it
  int64_t end_ns;  // Launch: number of the cubin or version of the graph, 0: unknown; Value: element of a vector << 32
                   // | its length, which is 0 for a scalar; Input: which of the tensors that this one made
};
static_assert(sizeof(Event) == 32);
static_assert(kMaxSessions <= 16);

// Threads: `push` from the owning thread, `drain` from the consumer.
class Ring {
 public:
  static constexpr uint32_t kCapacity = 1u << 14;  // 512 KB a thread: 8 ms of scopes back to back at 1 us each

  [[nodiscard]] bool push(const Event& event) noexcept {
    const uint32_t head = head_.load(std::memory_order_relaxed);
    if (head - cached_tail_ == kCapacity) {
      cached_tail_ = tail_.load(std::memory_order_acquire);
      if (head - cached_tail_ == kCapacity) return false;
    }
    events_[head % kCapacity] = event;
    head_.store(head + 1, std::memory_order_release);
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
