// The one clock of the recorder. It counts nanoseconds since the epoch, as CUPTI's records do, from the moment at which
// the process first asked. From then on nobody sets it, so setting the system's clock moves no event.
//
// A thread reads the processor's counter (10 ns instead of 25 to 40) once the consumer has compared that with
// CLOCK_MONOTONIC for long enough, and where the kernel trusts the counter itself. Elsewhere it asks the system.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace bragg {

[[nodiscard]] inline int64_t system_ns(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// For durations and deadlines.
[[nodiscard]] inline int64_t monotonic_ns() noexcept { return system_ns(CLOCK_MONOTONIC); }

// The processor's counter; 0 where there is none.
[[nodiscard]] inline uint64_t ticks_now() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return 0;
#endif
}

// Whether it runs at one pace on all cores: the processor says so, and the kernel keeps its own time by it.
[[nodiscard]] bool ticks_are_steady() noexcept;

// Turns ticks into the time of another clock that both are read from now and then. Threads: `follow` one at a time;
// `time_at` any.
class TickClock {
 public:
  // Both at one moment. The first calls only watch; once they span 10 ms, `is_ready`. Later ones correct the pace so
  // that the two meet again within a second, and time does not go back by more than a microsecond. Further apart than a
  // pace explains, as after the machine slept, it is not ready until it has watched anew.
  void follow(uint64_t ticks, int64_t time_ns) noexcept;

  [[nodiscard]] bool is_ready() const noexcept {
    int64_t unused;
    return time_at(0, unused);
  }

  // False: not ready; ask the other clock.
  [[nodiscard]] bool time_at(uint64_t ticks, int64_t& time_ns) const noexcept {
    uint32_t version;
    Line line;
    do {
      version = version_.load(std::memory_order_acquire);
      const AtomicLine& from = lines_[version & 1];
      line = {from.pace.load(std::memory_order_acquire), from.ticks.load(std::memory_order_acquire),
              from.time_ns.load(std::memory_order_acquire)};
    } while (version_.load(std::memory_order_relaxed) != version);
    if (line.pace == 0) return false;
    // Ticks that were read before the pace changed.
    const uint64_t since = ticks > line.ticks ? ticks - line.ticks : 0;
    time_ns = line.time_ns + static_cast<int64_t>(static_cast<unsigned __int128>(since) * line.pace >> kPaceBits);
    return true;
  }

 private:
  static constexpr int kPaceBits = 32;

  // From a moment on.
  struct Line {
    uint64_t pace;  // ns for a tick, times 2^32; 0: not known
    uint64_t ticks;
    int64_t time_ns;
  };
  struct AtomicLine {
    std::atomic<uint64_t> pace{0};
    std::atomic<uint64_t> ticks{0};
    std::atomic<int64_t> time_ns{0};
  };
  void set(const Line& line) noexcept;

  // Two lines, of which one is in force while the other is written: no reader waits for a writer that was put aside.
  alignas(64) std::atomic<uint32_t> version_{0};  // odd: the second
  std::array<AtomicLine, 2> lines_;
  uint64_t first_ticks_ = 0;  // of the span that the pace is measured over
  int64_t first_ns_ = 0;
};

namespace detail {
inline constinit TickClock tick_clock;
[[nodiscard]] int64_t slow_now_ns() noexcept;
}  // namespace detail

[[nodiscard]] inline int64_t now_ns() noexcept {
  int64_t time_ns;
  return detail::tick_clock.time_at(ticks_now(), time_ns) ? time_ns : detail::slow_now_ns();
}

// Keeps the clock right. Threads: the consumer, every second at least.
void tend_clock() noexcept;

// How far the system's clock is ahead of this one by now: 0 until someone sets it.
[[nodiscard]] int64_t clock_steps_ns() noexcept;

}  // namespace bragg
