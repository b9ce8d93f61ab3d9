// The one clock of the recorder. It counts nanoseconds since the epoch, as CUPTI's records do, from the moment at which
// the process first asked; from then on nobody sets it: a system clock that is set back or forward moves no event.
#pragma once

#include <cstdint>
#include <ctime>

namespace bragg {

[[nodiscard]] inline int64_t system_ns(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// For durations and deadlines.
[[nodiscard]] inline int64_t monotonic_ns() noexcept { return system_ns(CLOCK_MONOTONIC); }

namespace detail {
[[nodiscard]] inline int64_t epoch_ns() noexcept {
  static const int64_t epoch = system_ns(CLOCK_REALTIME) - monotonic_ns();
  return epoch;
}
}  // namespace detail

[[nodiscard]] inline int64_t now_ns() noexcept { return monotonic_ns() + detail::epoch_ns(); }

// How far the system's clock is ahead of this one by now: 0 until someone sets it.
[[nodiscard]] inline int64_t clock_steps_ns() noexcept {
  return system_ns(CLOCK_REALTIME) - monotonic_ns() - detail::epoch_ns();
}

}  // namespace bragg
