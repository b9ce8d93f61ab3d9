// The first launch of a session or phase, by its correlation id. The ids wrap around, and a program that runs for days
// uses up 2^31 of them: the first one then follows the newest at a distance.
#pragma once

#include <cstdint>

namespace bragg {

class FirstCorrelation {
 public:
  void note(uint32_t correlation) {
    if (!is_known() || is_after(correlation))
      first_ = correlation;
    else if (correlation - first_ > kKept)
      first_ = correlation - kKept;
  }
  [[nodiscard]] bool is_known() const { return first_ != 0; }
  [[nodiscard]] bool is_after(uint32_t correlation) const { return static_cast<int32_t>(correlation - first_) < 0; }

 private:
  static constexpr uint32_t kKept = 1u << 30;  // far more than can be in flight, and half of what can be told apart
  uint32_t first_ = 0;                         // 0: no launch yet
};

}  // namespace bragg
