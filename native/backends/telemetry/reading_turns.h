// Which readings a sample affords: those that take long are made less often, so that together they keep to a budget.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace bragg {

// Threads: that of telemetry. What a reading takes depends on the machine: a call of NVML 1 us, or 70 and more in a
// virtual machine, and some calls ten times as long as others.
template <size_t count>
class ReadingTurns {
 public:
  // Of the budget a reading gets as much as its weight says, if they want more than that together.
  explicit ReadingTurns(const std::array<double, count>& weights) : weights_(weights) {}

  // A sample begins, in which readings may take so much CPU time on the long average.
  void begin_sample(int64_t budget_ns) {
    const double level = level_of(static_cast<double>(budget_ns));
    for (size_t i = 0; i < count; ++i) {
      const double share = weights_[i] * level;
      const double samples = cost_ns_[i] <= share ? 1 : std::ceil(cost_ns_[i] / share);
      if (static_cast<double>(++waited_[i]) >= samples) waited_[i] = 0;
    }
  }
  // In the sample that has begun. All of them are in the first two: of a reading's costs the first, for which a driver
  // makes ready, is left out.
  [[nodiscard]] bool is_due(size_t reading) const { return waited_[reading] == 0; }

  void note(size_t reading, int64_t cpu_ns) {
    const auto cost = static_cast<double>(cpu_ns);
    double& known = cost_ns_[reading];
    if (!std::exchange(has_begun_[reading], true)) return;
    known = known == 0 ? cost : known + (std::min(cost, kMostTimes * known) - known) / kSmoothing;
  }

 private:
  static constexpr double kSmoothing = 8;  // readings: one that was interrupted counts little, and not more than
  static constexpr double kMostTimes = 4;  // what is known, or it would put off the next ones for long

  // How much of the budget a weight of 1 gets, so that cheap readings leave what they do not need to the others.
  [[nodiscard]] double level_of(double budget_ns) const {
    std::array<size_t, count> order;
    for (size_t i = 0; i < count; ++i) order[i] = i;
    const auto per_weight = [&](size_t i) { return cost_ns_[i] / weights_[i]; };
    std::ranges::sort(order, {}, per_weight);
    double left_ns = budget_ns, left_weight = 0;
    for (const double weight : weights_) left_weight += weight;
    for (const size_t i : order) {
      if (per_weight(i) > left_ns / left_weight) break;
      left_ns -= cost_ns_[i];
      left_weight -= weights_[i];
      if (left_weight <= 0) return HUGE_VAL;
    }
    return left_ns / left_weight;
  }

  std::array<double, count> weights_;
  std::array<double, count> cost_ns_{};  // 0: not known yet
  std::array<bool, count> has_begun_{};
  std::array<uint64_t, count> waited_ = never();

  // One more makes any reading due.
  static constexpr std::array<uint64_t, count> never() {
    std::array<uint64_t, count> waited{};
    waited.fill(uint64_t{1} << 62);
    return waited;
  }
};

}  // namespace bragg
