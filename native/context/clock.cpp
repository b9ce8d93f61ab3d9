#include "context/clock.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace bragg {
namespace {

constexpr int64_t kFirstSpanNs = 10'000'000;        // the two clocks are read within 50 ns: 5 ppm of it
constexpr int64_t kLongestSpanNs = 10'000'000'000;  // the system's pace is corrected too
constexpr int64_t kCorrectedWithinNs = 1'000'000'000;
constexpr int64_t kJumpNs = 1'000'000;  // no pace explains so much within a second

// How far the system's clock was ahead of the monotonic one when the process first asked.
int64_t epoch_ns() noexcept {
  static std::atomic<int64_t> epoch{0};
  int64_t known = epoch.load(std::memory_order_relaxed);
  if (known != 0) return known;
  const int64_t found = system_ns(CLOCK_REALTIME) - monotonic_ns();
  return epoch.compare_exchange_strong(known, found, std::memory_order_relaxed) ? found : known;
}

#if defined(__x86_64__)
// The kernel watches the counter and takes another clock when it is not the same on all cores.
bool kernel_trusts_ticks() noexcept {
  char name[32] = "";
  if (FILE* file = std::fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re")) {
    if (std::fgets(name, sizeof name, file) == nullptr) name[0] = '\0';
    std::fclose(file);
  }
  return std::strcmp(name, "tsc\n") == 0 || std::strcmp(name, "kvm-clock\n") == 0;
}

bool processor_says_steady() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d >> 8 & 1) != 0;  // "invariant TSC"
}

bool may_read_ticks() noexcept {
  int mode = 0;
  return prctl(PR_GET_TSC, &mode) != 0 || mode == PR_TSC_ENABLE;
}
#endif

}  // namespace

bool ticks_are_steady() noexcept {
#if defined(__x86_64__)
  static const bool are_steady = processor_says_steady() && may_read_ticks() && kernel_trusts_ticks();
  return are_steady;
#elif defined(__aarch64__)
  return true;  // the architecture says so
#else
  return false;
#endif
}

void TickClock::set(const Line& line) noexcept {
  const uint32_t next = version_.load(std::memory_order_relaxed) + 1;
  AtomicLine& to = lines_[next & 1];
  to.pace.store(line.pace, std::memory_order_release);
  to.ticks.store(line.ticks, std::memory_order_release);
  to.time_ns.store(line.time_ns, std::memory_order_release);
  version_.store(next, std::memory_order_release);
}

void TickClock::follow(uint64_t ticks, int64_t time_ns) noexcept {
  int64_t shown_ns = time_ns;
  const bool is_shown = time_at(ticks, shown_ns);
  const int64_t ahead_ns = shown_ns - time_ns;
  const bool has_jumped = ahead_ns > kJumpNs || ahead_ns < -kJumpNs;
  if (first_ns_ == 0 || ticks < first_ticks_ || has_jumped) {
    first_ticks_ = ticks;
    first_ns_ = time_ns;
    if (is_shown) set({0, ticks, time_ns});
    return;
  }
  const int64_t span_ns = time_ns - first_ns_;
  if (span_ns < kFirstSpanNs) return;
  const uint64_t span_ticks = ticks - first_ticks_;
  const auto pace = static_cast<double>(span_ns) / static_cast<double>(span_ticks);
  const double corrected = pace * (1 - static_cast<double>(ahead_ns) / static_cast<double>(kCorrectedWithinNs));
  set({static_cast<uint64_t>(corrected * static_cast<double>(uint64_t{1} << kPaceBits)), ticks, shown_ns});
  if (span_ns > kLongestSpanNs) {
    first_ticks_ = ticks;
    first_ns_ = time_ns;
  }
}

int64_t detail::slow_now_ns() noexcept { return monotonic_ns() + epoch_ns(); }

// The two are read at one moment: of some tries the one in which the least time passed.
void tend_clock() noexcept {
  if (!ticks_are_steady()) return;
  uint64_t best_ticks = 0, least = ~uint64_t{0};
  int64_t best_ns = 0;
  for (int tries = 0; tries < 4; ++tries) {
    const uint64_t before = ticks_now();
    const int64_t time_ns = detail::slow_now_ns();
    const uint64_t took = ticks_now() - before;
    if (took >= least) continue;
    least = took;
    best_ticks = before + took / 2;
    best_ns = time_ns;
  }
  detail::tick_clock.follow(best_ticks, best_ns);
}

int64_t clock_steps_ns() noexcept { return system_ns(CLOCK_REALTIME) - monotonic_ns() - epoch_ns(); }

}  // namespace bragg
