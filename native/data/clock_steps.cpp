#include "data/clock_steps.h"

#include <cstdlib>
#include <ranges>

#include "data/json.h"

namespace bragg {
namespace {

constexpr int64_t kSlackNs = 10'000'000;  // a record that is stamped by the GPU's clock may end so much after now

}  // namespace

void ClockSteps::note(int64_t ahead_ns, int64_t now_ns) {
  const int64_t by_ns = ahead_ns - ahead_ns_;
  ahead_ns_ = ahead_ns;
  if (std::abs(by_ns) < kLeastStepNs) return;
  if (steps_.size() == kMostKept) steps_.erase(steps_.begin());
  steps_.push_back({now_ns, by_ns});
}

void ClockSteps::correct(int64_t& start_ns, int64_t& end_ns, int64_t now_ns) const {
  if (start_ns <= 0 || end_ns <= 0) return;  // not known
  int64_t best_ns = ahead_ns_;
  int64_t before_ns = ahead_ns_;
  for (const Step& step : std::views::reverse(steps_)) {
    if (now_ns - step.at_ns > kLatestNs) break;
    before_ns -= step.by_ns;
    const bool is_possible = end_ns - before_ns <= now_ns + kSlackNs;
    const bool was_impossible = end_ns - best_ns > now_ns + kSlackNs;
    if (is_possible && (was_impossible || before_ns < best_ns)) best_ns = before_ns;
  }
  start_ns -= best_ns;
  end_ns -= best_ns;
}

std::string ClockSteps::json(int64_t from_ns) const {
  std::string rows;
  for (const Step& step : steps_) {
    if (step.at_ns < from_ns) continue;
    rows += rows.empty() ? "[" : ",";
    rows += JsonObject().put("at_ns", step.at_ns).put("by_ns", step.by_ns).text();
  }
  if (!rows.empty()) rows += ']';
  return rows;
}

}  // namespace bragg
