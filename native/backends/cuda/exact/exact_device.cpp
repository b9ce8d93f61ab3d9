#include "backends/cuda/exact/exact_device.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "backends/cuda/counters/counter_choice.h"
#include "data/json.h"

namespace bragg {
namespace {

constexpr size_t kMostSets = 16;    // each takes as many launches of a kernel as one would
constexpr size_t kMostPasses = 64;  // each takes a launch: throughputs that are made of many counters take 19
bool is_in(const std::vector<Counter>& counters, const std::string& text, std::string Counter::* member) {
  return std::ranges::find(counters, text, member) != counters.end();
}

}  // namespace

// With one pass CUPTI counts nothing any more; with several, and of instructions, other sets may still be counted.
bool ExactDevice::refuse(const CuptiFailure& failure) {
  const std::string why = counter_refusal(cupti_, failure.call, failure.result);
  if (!sets_.empty() && (has_several_passes(set_) || sets_[set_].is_of_instructions)) {
    give_up(sets_[set_], why);
    return false;
  }
  reason_ = why;
  std::fprintf(stderr, "bragg: no more launches on GPU %u are counted exactly, its kernels are timed as before: %s\n",
               device_, reason_.c_str());
  return false;
}

void ExactDevice::give_up(Set& set, const std::string& why) {
  set.is_given_up = true;
  const std::vector<std::string>& names = names_of(set);
  if (set.is_of_instructions) {
    instructions_->close();
    left_out_.insert(left_out_.end(), names.begin(), names.end());
    std::fprintf(stderr, "bragg: GPU %u does not count instructions: %s\n", device_, why.c_str());
    return;
  }
  profiler_.close();
  left_out_.push_back(names.back());
  std::fprintf(stderr, "bragg: GPU %u does not count %s, which takes %zu passes: %s\n", device_, names.back().c_str(),
               set.passes, why.c_str());
}

const std::vector<std::string>& ExactDevice::names_of(const Set& set) const {
  return set.is_of_instructions ? instructions_->names() : set.metrics.names();
}

// The profiler's last set is that of this number from now on.
CuptiFailure ExactDevice::begin_set(size_t number) {
  if (profiled_sets_ > number) return {};
  ++profiled_sets_;
  return profiler_.add_set();
}

template <class Predicate>
void ExactDevice::leave_out(std::vector<Counter>& wanted, const Predicate& is_left_out) {
  for (const Counter& counter : wanted)
    if (is_left_out(counter)) left_out_.push_back(counter.track);
  std::erase_if(wanted, is_left_out);
}

// Counters of a group share the time that they are counted in: they are in one set, or left out.
CuptiFailure ExactDevice::choose_of_one_pass(std::vector<Counter>& wanted, size_t most, std::vector<ChosenSet>& sets) {
  const auto choose = [&](const std::vector<std::string>& metrics, size_t& passes) {
    return profiler_.choose(ExactMetrics::with_duration(metrics), passes);
  };
  while (!wanted.empty() && sets.size() < most) {
    std::vector<Counter> chosen;
    if (const CuptiFailure failure = begin_set(sets.size())) return failure;
    if (const CuptiFailure failure = choose_in_one_pass(wanted, choose, chosen)) return failure;
    if (chosen.empty()) break;
    std::erase_if(wanted, [&](const Counter& counter) { return is_in(chosen, counter.track, &Counter::track); });
    leave_out(wanted, [&](const Counter& counter) {
      return !counter.group.empty() && is_in(chosen, counter.group, &Counter::group);
    });
    sets.push_back({std::move(chosen), 1});
  }
  return {};
}

// 0: none of its alternatives can be counted; else it keeps the one that can.
size_t ExactDevice::passes_of(Counter& counter) {
  for (const auto& alternative : counter.alternatives) {
    size_t passes = 0;
    if (profiler_.choose(ExactMetrics::with_duration(alternative), passes) || passes == 0 || passes > kMostPasses)
      continue;
    counter.alternatives = {alternative};
    return passes;
  }
  return 0;
}

CuptiFailure ExactDevice::choose_of_several_passes(std::vector<Counter>& wanted, std::vector<ChosenSet>& sets) {
  for (Counter& counter : wanted) {
    size_t passes = 0;
    if (sets.size() < kMostSets) {
      if (const CuptiFailure failure = begin_set(sets.size())) return failure;
      passes = passes_of(counter);
    }
    if (passes == 0)
      left_out_.push_back(counter.track);
    else
      sets.push_back({{counter}, passes});
  }
  return {};
}

// The range profiler takes the names of these metrics and answers 0: CUPTI patches the kernels that it counts them of.
void ExactDevice::add_set_of_instructions(const std::vector<std::string>& metrics) {
  if (metrics.empty()) return;
  std::string reason;
  if (!load_sass_metrics(cupti_, sass_, reason)) {
    left_out_.insert(left_out_.end(), metrics.begin(), metrics.end());
    std::fprintf(stderr, "bragg: no instructions are counted: %s\n", reason.c_str());
    return;
  }
  instructions_.emplace(sass_, context_, device_);
  if (instructions_->choose(metrics, left_out_)) left_out_.insert(left_out_.end(), metrics.begin(), metrics.end());
  if (instructions_->has_metrics()) sets_.push_back({ExactMetrics({}), 1, true});
}

CuptiFailure ExactDevice::choose_sets(std::vector<Counter> wanted) {
  std::vector<std::string> by_instruction;
  std::erase_if(wanted, [&](const Counter& counter) {
    const std::string& name = counter.alternatives[0][0];
    if (!InstructionCounter::counts(name)) return false;
    by_instruction.push_back(name);
    return true;
  });
  // A profiler that is enabled again after instructions were counted hangs (CUPTI 13.0, H200): it has one set then.
  const bool is_alone = by_instruction.empty();
  std::vector<ChosenSet> sets;
  if (const CuptiFailure failure = choose_of_one_pass(wanted, is_alone ? kMostSets : 1, sets)) return failure;
  if (is_alone) {
    if (const CuptiFailure failure = choose_of_several_passes(wanted, sets)) return failure;
  } else {
    leave_out(wanted, [](const Counter&) { return true; });
  }
  const bool are_several = sets.size() > 1 || !is_alone || (sets.size() == 1 && sets[0].passes > 1);
  for (ChosenSet& set : sets) sets_.push_back({ExactMetrics(std::move(set.counters), are_several), set.passes});
  add_set_of_instructions(by_instruction);
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

bool ExactDevice::begin(size_t set, RangePasses& passes) {
  set_ = set;
  if (sets_[set].is_of_instructions) {
    const CuptiFailure failure = instructions_->begin();
    return !failure || refuse(failure);
  }
  const CuptiFailure failure = profiler_.begin(set, has_several_passes(set) ? &passes : nullptr);
  if (failure) passes = {};
  return !failure || refuse(failure);
}

std::optional<ExactDevice::Count> ExactDevice::end() {
  if (sets_[set_].is_of_instructions) return end_instructions();
  std::vector<double> values;
  Count count{RangeProfiler::Counted::Nothing, {}, {}};
  if (const CuptiFailure failure = profiler_.end(values, count.counted)) {
    refuse(failure);
    return std::nullopt;
  }
  if (count.counted == RangeProfiler::Counted::All) count.values = sets_[set_].metrics.values_of(values);
  return count;
}

std::optional<ExactDevice::Count> ExactDevice::end_instructions() {
  Count count{RangeProfiler::Counted::All, {}, {}};
  if (const CuptiFailure failure = instructions_->end(count.instructions)) {
    refuse(failure);
    return std::nullopt;
  }
  has_counted_instructions_ |= !count.instructions.empty();
  if (has_counted_instructions_) return count;
  give_up(sets_[set_], "CUPTI has counted none of a kernel that has run");
  return std::nullopt;
}

std::string ExactDevice::description_json() const {
  JsonObject json;
  json.put("chip", profiler_.chip());
  if (!reason_.empty()) json.put("reason", reason_);
  json.raw("sets", json_array(sets_, [&](const Set& set) { return json_array(names_of(set), json_string); }));
  json.raw("passes", json_array(sets_, [](const Set& set) { return std::to_string(set.passes); }));
  json.raw("left_out", json_array(left_out_, json_string));
  return json.text();
}

}  // namespace bragg
