// How much time of the program's threads the recorder takes. One call of the core in 64 is timed, chosen at random:
// calls come in pairs and other rhythms that a fixed step would fall in with. A random one also finds the caches as the
// program left them, which a calibration does not.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "context/clock.h"

namespace bragg {

enum class CostPart : uint8_t { Launches, Operators, Scopes, Samples, Values, ApiCalls };
inline constexpr size_t kCostParts = 6;

// What threads have counted.
struct CostTotals {
  struct Part {
    uint64_t timed = 0;  // calls
    uint64_t timed_ns = 0;
    uint64_t rest_ns = 0;  // measured in full, so not multiplied
    uint64_t apart = 0;    // of the timed calls, those that timed something apart
    uint64_t apart_ns = 0;

    [[nodiscard]] uint64_t calls() const noexcept { return timed * kMeasureEvery; }
    [[nodiscard]] uint64_t ns() const noexcept;  // of all calls, without the readings of the clock
    [[nodiscard]] uint64_t ns_apart() const noexcept;
  };
  static constexpr uint32_t kMeasureEvery = 64;  // on average: from 1 to 127

  std::array<Part, kCostParts> parts{};
  uint64_t waits_ns = 0;  // for a ring to be read

  [[nodiscard]] CostTotals since(const CostTotals& before) const noexcept;
};

// Of one thread. Threads: its own; `add_to` any.
class OwnCost {
 public:
  // Runs `work`; the calls that are not timed pay a decrement.
  template <class Work>
  void measure(CostPart part, Work&& work) noexcept {
    if (--until_timed_ != 0) [[likely]]
      return work();
    measure_now(part, work);
  }

  // Once in a call: what takes long because of the program's depth, not of caches.
  template <class Work>
  auto measure_apart(Work&& work) noexcept {
    if (until_timed_ != 0) [[likely]]
      return work();
    const int64_t start_ns = now_ns();
    const auto result = work();
    apart_ns_ = now_ns() - start_ns;
    return result;
  }

  // A wait is measured exactly, and is not part of what is timed and multiplied.
  void add_wait(int64_t ns) noexcept { add(waits_ns_, static_cast<uint64_t>(ns)); }
  // What one call cost, where it is known.
  void add_exactly(CostPart part, int64_t ns) noexcept { add(of(part).rest_ns, static_cast<uint64_t>(ns)); }

  void add_to(CostTotals& totals) const noexcept;

 private:
  // A longer call was interrupted, or did something for the first time: its excess counts once.
  static constexpr uint64_t kLongestNs = 20'000;

  // Apart from what runs 63 times as often, which so lies in fewer cache lines.
  template <class Work>
  [[gnu::noinline]] void measure_now(CostPart part, Work& work) noexcept {
    const uint64_t waits_before = waits_ns_.load(std::memory_order_relaxed);
    apart_ns_ = -1;
    const int64_t start_ns = now_ns();
    work();
    note(part, now_ns() - start_ns, waits_before);
  }

  struct Part {
    std::atomic<uint64_t> timed{0};
    std::atomic<uint64_t> timed_ns{0};
    std::atomic<uint64_t> rest_ns{0};
    std::atomic<uint64_t> apart{0};
    std::atomic<uint64_t> apart_ns{0};
  };

  static void add(std::atomic<uint64_t>& sum, uint64_t value) noexcept {
    sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
  [[nodiscard]] Part& of(CostPart part) noexcept { return parts_[static_cast<size_t>(part)]; }
  void note(CostPart part, int64_t elapsed_ns, uint64_t waits_before) noexcept;

  uint32_t until_timed_ = 1;  // the first call, which also draws the next number; 0: this call is timed
  uint32_t random_ = 0;
  std::atomic<uint64_t> waits_ns_{0};
  int64_t apart_ns_ = -1;  // of the call that is timed; -1: nothing was
  std::array<Part, kCostParts> parts_{};
};

}  // namespace bragg
