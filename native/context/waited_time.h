// How much of a stretch of time a thread waited, by how long it ran in it and how long it was ready to but had no core.
#pragma once

#include <algorithm>
#include <cstdint>

namespace bragg {

// Less than this may be interrupts, or the time between the readings of two clocks.
constexpr int64_t kLeastWaitShare = 10;
constexpr int64_t kLeastWaitNs = 50'000;

[[nodiscard]] constexpr bool is_wait(int64_t wait_ns, int64_t of_ns) noexcept {
  return wait_ns >= std::max(kLeastWaitNs, of_ns / kLeastWaitShare);
}

// A machine with other work makes longer what the thread does, and what it waits for, such as a short sleep: time
// without a core is shared out to both. 0 where it is too little to tell.
[[nodiscard]] constexpr int64_t waited_time(int64_t elapsed_ns, int64_t ran_ns, int64_t ready_ns) noexcept {
  const int64_t had_its_way_ns = elapsed_ns - ready_ns;
  const int64_t asleep_ns = had_its_way_ns - ran_ns;
  if (asleep_ns <= 0 || !is_wait(asleep_ns, had_its_way_ns)) return 0;
  return static_cast<int64_t>(static_cast<double>(elapsed_ns) * static_cast<double>(asleep_ns) /
                              static_cast<double>(had_its_way_ns));
}

}  // namespace bragg
