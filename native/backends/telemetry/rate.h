// The rate of a counter that only grows, from its differences.
#pragma once

#include <cstdint>

#include "backends/telemetry/quantities.h"

namespace bragg {

class Rate {
 public:
  // Per second since the reading before; no reading at the first, and where the counter went back, as after a reset.
  [[nodiscard]] double per_second(uint64_t count, int64_t time_ns) {
    const bool is_known = time_ns_ != 0 && time_ns > time_ns_ && count >= count_;
    const double rate =
        is_known ? static_cast<double>(count - count_) * 1e9 / static_cast<double>(time_ns - time_ns_) : kNoReading;
    count_ = count;
    time_ns_ = time_ns;
    return rate;
  }

 private:
  uint64_t count_ = 0;
  int64_t time_ns_ = 0;
};

}  // namespace bragg
