// The first launch of a session or phase, by its correlation id. The ids wrap around, and a program that runs for days
// uses up 2^31 of them: the first one then follows the newest at a distance.
#pragma once

#include <cstdint>

#include "context/ids.h"

namespace bragg {

class FirstCorrelation {
 public:
  void note(CorrelationId correlation) {
    const uint32_t number = number_of(correlation);
    if (!is_known() || is_after(correlation))
      first_ = number;
    else if (number - first_ > kKept)
      first_ = number - kKept;
  }
  [[nodiscard]] bool is_known() const { return first_ != 0; }
  [[nodiscard]] bool is_after(CorrelationId correlation) const {
    return static_cast<int32_t>(number_of(correlation) - first_) < 0;
  }

 private:
  static constexpr uint32_t kKept = 1u << 30;  // far more than can be in flight, and half of what can be told apart
  uint32_t first_ = 0;                         // 0: no launch yet
};

}  // namespace bragg
