#include "context/clock.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "check.h"
#include "data/clock_readings.h"

namespace {

using bragg::TickClock;
using bragg::test::comes_true;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kEpochNs = 1'700'000'000'000'000'000;

// A counter of so many ticks a microsecond, 3 GHz unless it drifts.
struct Machine {
  int64_t time_ns = 0;
  double ticks = 5e12;
  double ticks_per_ns = 3;
  TickClock clock;

  void pass(int64_t ns) {
    time_ns += ns;
    ticks += static_cast<double>(ns) * ticks_per_ns;
  }
  void follow() { clock.follow(static_cast<uint64_t>(ticks), kEpochNs + time_ns); }
  // How far the clock is ahead.
  int64_t error_ns() {
    int64_t shown_ns = 0;
    CHECK(clock.time_at(static_cast<uint64_t>(ticks), shown_ns));
    return shown_ns - kEpochNs - time_ns;
  }
};

TEST(a_clock_of_ticks_is_ready_once_it_has_watched_for_10_ms) {
  Machine machine;
  int64_t unused = 0;
  machine.follow();
  machine.pass(9 * kMs);
  machine.follow();
  CHECK(!machine.clock.is_ready());
  CHECK(!machine.clock.time_at(static_cast<uint64_t>(machine.ticks), unused));
  machine.pass(2 * kMs);
  machine.follow();
  CHECK(machine.clock.is_ready());
  machine.pass(500 * kMs);
  CHECK(machine.error_ns() >= -10 && machine.error_ns() <= 10);
}

TEST(a_clock_of_ticks_that_drifts_meets_the_other_again_and_never_goes_back) {
  Machine machine;
  machine.follow();
  machine.pass(20 * kMs);
  machine.follow();
  machine.ticks_per_ns = 3.0003;  // 100 ppm, more than the system's clock is ever corrected by
  int64_t before_ns = 0;
  for (int i = 0; i < 2'000; ++i) {
    machine.pass(20 * kMs);
    for (int side = 0; side < 2; ++side) {  // right before and after the pace changes
      int64_t shown_ns = 0;
      REQUIRE(machine.clock.time_at(static_cast<uint64_t>(machine.ticks), shown_ns));
      CHECK(shown_ns >= before_ns);
      before_ns = shown_ns;
      machine.follow();
    }
  }
  CHECK(machine.error_ns() > -1'000 && machine.error_ns() < 1'000);
}

TEST(a_clock_of_ticks_watches_anew_when_the_machine_has_slept) {
  Machine machine;
  machine.follow();
  machine.pass(20 * kMs);
  machine.follow();
  machine.ticks = 1000;  // the counter began again
  machine.pass(20 * kMs);
  machine.follow();
  CHECK(!machine.clock.is_ready());
  machine.pass(20 * kMs);
  machine.follow();
  CHECK(machine.clock.is_ready());
  CHECK(machine.error_ns() >= -10 && machine.error_ns() <= 10);
}

TEST(readings_of_clocks_stay_few_and_cover_the_whole_recording) {
  using Readings = bragg::ClockReadings<1>;
  Readings readings;
  const int64_t apart_ns = Readings::kApartNs;
  size_t n_read = 0;
  for (int64_t now_ns = 0; now_ns < 10'000 * apart_ns; now_ns += apart_ns) {
    if (!readings.is_due(now_ns)) continue;
    readings.add(now_ns, {now_ns + 7});
    ++n_read;
  }
  const std::string json = readings.json();
  const auto n_kept = static_cast<size_t>(std::count(json.begin(), json.end(), ']')) - 1;
  CHECK(n_kept > Readings::kMostKept / 2 && n_kept <= Readings::kMostKept);
  CHECK(n_read < 100);
  CHECK(json.starts_with("[[0,7],["));
}

TEST(readings_at_the_ends_of_many_phases_do_not_thin_out_the_others) {
  bragg::ClockReadings<1> readings;
  const int64_t apart_ns = bragg::ClockReadings<1>::kApartNs;
  int64_t now_ns = 0;
  for (; now_ns <= 10 * apart_ns; now_ns += apart_ns / 100) readings.add(now_ns, {now_ns});
  const std::string json = readings.json();
  const auto n_kept = std::count(json.begin(), json.end(), ']') - 1;
  CHECK_EQ(n_kept, 11);
  const std::string last = std::to_string(now_ns - apart_ns / 100);
  CHECK(json.ends_with("[" + last + "," + last + "]]"));
}

TEST(clocks_of_the_system_are_read_at_one_moment) {
  bragg::SystemClockReadings readings;
  bragg::read_system_clocks(readings);
  long long time_ns = 0, real_ns = 0, monotonic_ns = 0, raw_ns = 0;
  REQUIRE(std::sscanf(readings.json().c_str(), "[[%lld,%lld,%lld,%lld]]", &time_ns, &real_ns, &monotonic_ns, &raw_ns) ==
          4);
  CHECK(std::abs(time_ns - real_ns) < 1'000'000);
  CHECK(std::abs((time_ns - monotonic_ns) - (bragg::now_ns() - bragg::monotonic_ns())) < 1'000'000);
  CHECK(raw_ns > 0);
}

TEST(the_time_agrees_with_the_systems_and_goes_on_while_it_is_tended) {
  std::atomic<bool> has_ended{false};
  std::thread consumer([&] {
    while (!has_ended.load()) {
      bragg::tend_clock();
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  CHECK(comes_true([] { return bragg::detail::tick_clock.is_ready() == bragg::ticks_are_steady(); }));
  int64_t before_ns = bragg::now_ns();
  const int64_t end_ns = bragg::monotonic_ns() + 60 * kMs;
  int64_t back_ns = 0;
  while (bragg::monotonic_ns() < end_ns) {
    for (int i = 0; i < 100; ++i) {
      const int64_t now_ns = bragg::now_ns();
      back_ns = std::max(back_ns, before_ns - now_ns);
      before_ns = now_ns;
    }
  }
  has_ended.store(true);
  consumer.join();
  CHECK(back_ns < 1'000);
  int64_t least_ns = INT64_MAX;  // of several, because a thread may be put aside between the two
  for (int i = 0; i < 100; ++i) {
    const int64_t system_ns = bragg::system_ns(CLOCK_REALTIME);
    const int64_t apart_ns = bragg::now_ns() - system_ns;
    least_ns = std::min(least_ns, apart_ns < 0 ? -apart_ns : apart_ns);
  }
  CHECK(least_ns < 100'000);
}

}  // namespace
