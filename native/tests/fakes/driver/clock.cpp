#include "driver/clock.h"

#include <atomic>
#include <cerrno>
#include <ctime>

#include "settings.h"

namespace bragg::fake::clock {
namespace {

uint64_t real_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

std::atomic<uint64_t> virtual_ns{real_ns()};

}  // namespace

uint64_t now_ns() noexcept {
  return knob(Knob::RealClock) != 0 ? real_ns() : virtual_ns.load(std::memory_order_relaxed);
}

uint64_t pass_call() noexcept {
  if (knob(Knob::RealClock) != 0) return real_ns();
  const auto step = static_cast<uint64_t>(knob(Knob::CallNs));
  return virtual_ns.fetch_add(step, std::memory_order_relaxed) + step;
}

void wait_until(uint64_t time_ns) noexcept {
  if (knob(Knob::RealClock) != 0) {
    const timespec until{static_cast<time_t>(time_ns / 1'000'000'000u), static_cast<long>(time_ns % 1'000'000'000u)};
    while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
    return;
  }
  uint64_t now = virtual_ns.load(std::memory_order_relaxed);
  while (now < time_ns && !virtual_ns.compare_exchange_weak(now, time_ns, std::memory_order_relaxed)) {
  }
}

}  // namespace bragg::fake::clock
