#include "data/clock_readings.h"

#include "context/clock.h"

namespace bragg {

void read_system_clocks(SystemClockReadings& readings) {
  std::array<int64_t, 3> best{};
  int64_t best_ns = 0, least_ns = INT64_MAX;
  for (int tries = 0; tries < 4; ++tries) {  // the one in which the least time passed: no thread was put aside
    const int64_t before_ns = now_ns();
    const std::array<int64_t, 3> read{system_ns(CLOCK_REALTIME), system_ns(CLOCK_MONOTONIC),
                                      system_ns(CLOCK_MONOTONIC_RAW)};
    const int64_t took_ns = now_ns() - before_ns;
    if (took_ns >= least_ns) continue;
    least_ns = took_ns;
    best_ns = before_ns + took_ns / 2;
    best = read;
  }
  readings.add(best_ns, best);
}

}  // namespace bragg
