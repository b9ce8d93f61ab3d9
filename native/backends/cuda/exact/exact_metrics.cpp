#include "backends/cuda/exact/exact_metrics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "backends/cuda/counters/counter_choice.h"

namespace bragg {
namespace {

constexpr const char* kDuration = "gpu__time_duration.sum";  // ns
constexpr const char* kLaunches = "_counted_launches";
// From both and the kernel's code follow its floating-point operations.
constexpr std::string_view kFlop = "flop";
constexpr const char* kOfFlop[] = {"smsp__sass_inst_executed", "smsp__sass_thread_inst_executed_pred_on"};

MetricId metric_id(std::string_view name, MetricKind kind) {
  const std::string_view unit = name.ends_with("_bytes") ? "B" : name.ends_with("_time") ? "ns" : "1";
  return MetricNames::instance().intern(name, unit, kind, true);
}

bool is_share_of_time(const Counter& counter) { return counter.metric.ends_with("_time"); }
bool adds_up(const Counter& counter) { return is_share_of_time(counter) || counter.scale == CounterScale::PerSecond; }

}  // namespace

std::vector<std::string> ExactMetrics::with_duration(const std::vector<std::string>& metrics) {
  std::vector<std::string> names{kDuration};
  names.insert(names.end(), metrics.begin(), metrics.end());
  return names;
}

ExactMetrics::ExactMetrics(std::vector<Counter> counters, bool is_one_of_several)
    : names_(with_duration(metrics_of(counters))), is_one_of_several_(is_one_of_several) {
  for (Counter& counter : counters) {
    const MetricId metric = metric_id(counter.metric, adds_up(counter) ? MetricKind::Inclusive : MetricKind::Property);
    rows_.push_back({std::move(counter), metric});
  }
}

std::vector<ExactMetrics::Value> ExactMetrics::values_of(std::span<const double> metrics) const {
  const double duration_ns = metrics[0];
  std::vector<Value> found;
  std::map<std::string, double> dram;
  std::vector<std::string> groups;
  size_t at = 1;
  for (const Row& row : rows_) {
    const size_t count = row.counter.alternatives[0].size();
    double value = counter_value(row.counter.scale, metrics.subspan(at, count), 1);
    at += count;
    if (is_share_of_time(row.counter)) value *= duration_ns / 100;
    if (!std::isfinite(value)) continue;
    found.push_back({row.metric, value});
    if (row.counter.group == "dram") dram[row.counter.metric] = value;
    if (!row.counter.group.empty() && std::ranges::find(groups, row.counter.group) == groups.end())
      groups.push_back(row.counter.group);
    if (row.counter.group.empty() && is_one_of_several_ && adds_up(row.counter))
      found.push_back({metric_id(row.counter.metric + kLaunches, MetricKind::Inclusive), 1});
  }
  if (dram.size() == 2)
    found.push_back({metric_id("dram_bytes", MetricKind::Inclusive), dram.begin()->second + dram.rbegin()->second});
  for (const std::string& group : groups) {
    found.push_back({metric_id(group + "_counted_time", MetricKind::Inclusive), duration_ns});
    if (is_one_of_several_) found.push_back({metric_id(group + kLaunches, MetricKind::Inclusive), 1});
  }
  std::erase_if(found, [](const Value& value) { return value.metric == MetricId::None; });
  return found;
}

std::vector<Counter> counters_of_range(std::string_view wanted) {
  std::vector<Counter> counters = counters_of(wanted);
  if (std::erase_if(counters, [](const Counter& counter) { return counter.track == kFlop; }) > 0)
    for (const char* metric : kOfFlop) std::ranges::copy(counters_of(metric), std::back_inserter(counters));
  for (Counter& counter : counters)
    std::ranges::stable_partition(counter.alternatives, [](const std::vector<std::string>& metrics) {
      return metrics[0].find("_realtime") == std::string::npos;
    });
  return counters;
}

}  // namespace bragg
