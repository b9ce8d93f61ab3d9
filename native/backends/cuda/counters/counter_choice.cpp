#include "backends/cuda/counters/counter_choice.h"

#include <algorithm>
#include <utility>

namespace bragg {
namespace {

CuptiFailure choose_one_by_one(const std::vector<Counter>& wanted, const ChooseMetrics& choose,
                               std::vector<Counter>& chosen) {
  chosen.clear();
  size_t passes = 0;
  for (const Counter& counter : wanted) {
    for (const auto& alternative : counter.alternatives) {
      chosen.push_back(counter);
      chosen.back().alternatives = {alternative};
      const CuptiFailure failure = choose(metrics_of(chosen), passes);
      if (!failure && passes == 1) break;
      chosen.pop_back();
      // An unknown metric is an invalid parameter; anything else is in the way of all of them.
      if (failure.is_unknown_chip()) return failure;
      if (failure && failure.result != cupti::Result::InvalidParameter &&
          failure.result != cupti::Result::InvalidMetricName && failure.result != cupti::Result::NotSupported)
        return failure;
    }
  }
  return chosen.empty() ? CuptiFailure{} : choose(metrics_of(chosen), passes);
}

}  // namespace

std::vector<std::string> metrics_of(const std::vector<Counter>& counters) {
  std::vector<std::string> names;
  for (const Counter& counter : counters)
    names.insert(names.end(), counter.alternatives[0].begin(), counter.alternatives[0].end());
  return names;
}

// On an H200 a plain metric takes 3 us; with `lts__throughput` among five metrics a sample took 140 us.
size_t decoding_weight(const std::vector<Counter>& counters) {
  constexpr size_t kThroughput = 10;
  size_t weight = 0;
  for (const std::string& metric : metrics_of(counters))
    weight += metric.find("__throughput") != metric.npos ? kThroughput : 1;
  return weight;
}

// The first alternatives of all at once, as each look takes so long.
CuptiFailure choose_in_one_pass(const std::vector<Counter>& wanted, const ChooseMetrics& choose,
                                std::vector<Counter>& chosen) {
  chosen = wanted;
  size_t passes = 0;
  if (choose(metrics_of(chosen), passes) || passes != 1) return choose_one_by_one(wanted, choose, chosen);
  for (Counter& counter : chosen) counter.alternatives.resize(1);
  return {};
}

std::vector<Counter> take_together(std::vector<Counter>& wanted) {
  std::vector<Counter> together, others;
  for (Counter& counter : wanted) {
    const auto is_right_beside = [&](const Counter& each) { return are_right_together(each, counter); };
    (std::ranges::all_of(together, is_right_beside) ? together : others).push_back(std::move(counter));
  }
  wanted = std::move(others);
  return together;
}

std::vector<Counter> others_than(const std::vector<Counter>& chosen, const std::vector<Counter>& wanted) {
  std::vector<Counter> others;
  for (const Counter& counter : wanted)
    if (std::ranges::find(chosen, counter.track, &Counter::track) == chosen.end()) others.push_back(counter);
  return others;
}

std::vector<std::string> tracks_of(const std::vector<Counter>& counters) {
  std::vector<std::string> tracks;
  for (const Counter& counter : counters) tracks.push_back(counter.track);
  return tracks;
}

}  // namespace bragg
