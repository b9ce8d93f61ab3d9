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

constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 50'000'000};

std::atomic<uint64_t> virtual_ns{real_ns()};
std::atomic<uint64_t> end_of_work_ns{0};

void raise_to(std::atomic<uint64_t>& time, uint64_t time_ns) noexcept {
  uint64_t now = time.load(std::memory_order_relaxed);
  while (now < time_ns && !time.compare_exchange_weak(now, time_ns, std::memory_order_relaxed)) {
  }
}

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
  while (time_ns > now_ns() + kEndlessNs / 2) nanosleep(&kNap, nullptr);
  raise_to(virtual_ns, time_ns);
}

void note_end_of_work(uint64_t time_ns) noexcept {
  if (time_ns < now_ns() + kEndlessNs / 2) raise_to(end_of_work_ns, time_ns);
}

void jump_to_end_of_work() noexcept { raise_to(virtual_ns, end_of_work_ns.load(std::memory_order_relaxed)); }

}  // namespace bragg::fake::clock
