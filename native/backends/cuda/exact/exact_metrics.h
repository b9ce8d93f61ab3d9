// What counters of one launch become: metrics of its node, under the names of those that are estimated from samples.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/cuda/counters/counter_metrics.h"
#include "context/metric_names.h"

namespace bragg {

// The metrics of CUPTI for one launch, and values out of theirs.
class ExactMetrics {
 public:
  struct Value {
    MetricId metric;
    double value;
  };

  // Counters, each with the one alternative that is known. `is_one_of_several`: other launches count other sets, so
  // each value has the number of its launches beside it.
  explicit ExactMetrics(std::vector<Counter> counters, bool is_one_of_several = false);

  // What is counted beside metrics, in front.
  [[nodiscard]] static std::vector<std::string> with_duration(const std::vector<std::string>& metrics);
  // By CUPTI's names; the first one is the kernel's duration.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  // Of one launch, from the metrics' values. Those that are not finite are left out.
  [[nodiscard]] std::vector<Value> values_of(std::span<const double> metrics) const;

 private:
  struct Row {
    Counter counter;
    MetricId metric;
  };
  std::vector<std::string> names_;
  std::vector<Row> rows_;
  bool is_one_of_several_;
};

// The alternatives in the order in which a range is asked for them: the hardware samples those of `_realtime` alone.
[[nodiscard]] std::vector<Counter> counters_of_range(std::string_view wanted);

}  // namespace bragg
