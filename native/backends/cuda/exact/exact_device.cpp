#include "backends/cuda/exact/exact_device.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "backends/cuda/counters/counter_choice.h"
#include "data/json.h"

namespace bragg {
namespace {

constexpr size_t kMostSets = 8;  // each takes as many launches of a kernel as one would

bool is_in(const std::vector<Counter>& counters, const std::string& text, std::string Counter::* member) {
  return std::ranges::find(counters, text, member) != counters.end();
}

}  // namespace

bool ExactDevice::refuse(const CuptiFailure& failure) {
  reason_ = counter_refusal(cupti_, failure.call, failure.result);
  std::fprintf(stderr, "bragg: no more launches on GPU %u are counted exactly, its kernels are timed as before: %s\n",
               device_, reason_.c_str());
  return false;
}

// Counters of a group share the time that they are counted in: they are in one set, or left out.
CuptiFailure ExactDevice::choose_sets(std::vector<Counter> wanted) {
  std::vector<std::vector<Counter>> sets;
  while (!wanted.empty() && sets.size() < kMostSets) {
    std::vector<Counter> chosen;
    const auto choose = [&](const std::vector<std::string>& metrics, size_t& passes) {
      return profiler_.choose(ExactMetrics::with_duration(metrics), passes);
    };
    if (!sets.empty())
      if (const CuptiFailure failure = profiler_.add_set()) return failure;
    if (const CuptiFailure failure = choose_in_one_pass(wanted, choose, chosen)) return failure;
    if (chosen.empty()) break;
    std::erase_if(wanted, [&](const Counter& counter) { return is_in(chosen, counter.track, &Counter::track); });
    std::erase_if(wanted, [&](const Counter& counter) {
      const bool is_apart = !counter.group.empty() && is_in(chosen, counter.group, &Counter::group);
      if (is_apart) left_out_.push_back(counter.track);
      return is_apart;
    });
    sets.push_back(std::move(chosen));
  }
  for (const Counter& counter : wanted) left_out_.push_back(counter.track);
  for (std::vector<Counter>& counters : sets) sets_.emplace_back(std::move(counters), sets.size() > 1);
  return {};
}

bool ExactDevice::open(const std::string& names) {
  if (const CuptiFailure failure = profiler_.look()) return refuse(failure);
  if (const CuptiFailure failure = choose_sets(counters_of_range(names))) return refuse(failure);
  if (!sets_.empty()) return true;
  reason_ = profiler_.chip() + " has none of the counters that are wanted";
  std::fprintf(stderr, "bragg: no launches on GPU %u are counted exactly: %s\n", device_, reason_.c_str());
  return false;
}

bool ExactDevice::begin(size_t set) {
  const CuptiFailure failure = profiler_.begin(set);
  return !failure || refuse(failure);
}

std::optional<std::vector<ExactMetrics::Value>> ExactDevice::end() {
  std::vector<double> values;
  if (const CuptiFailure failure = profiler_.end(values)) {
    refuse(failure);
    return std::nullopt;
  }
  if (values.empty()) return std::vector<ExactMetrics::Value>{};
  return sets_[profiler_.set()].values_of(values);
}

std::string ExactDevice::description_json() const {
  JsonObject json;
  json.put("chip", profiler_.chip());
  if (!reason_.empty()) json.put("reason", reason_);
  json.raw("sets", json_array(sets_, [](const ExactMetrics& set) { return json_array(set.names(), json_string); }));
  json.raw("left_out", json_array(left_out_, json_string));
  return json.text();
}

}  // namespace bragg
