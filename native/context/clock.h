#pragma once

#include <ctime>

#include <cstdint>

namespace bragg {

// CLOCK_REALTIME: the clock of CUPTI's activity records on Linux.
[[nodiscard]] inline int64_t now_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace bragg
