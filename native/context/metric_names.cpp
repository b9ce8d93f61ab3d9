#include "context/metric_names.h"

#include <algorithm>

namespace bragg {

MetricNames& MetricNames::instance() {
  static MetricNames& names = *new MetricNames;
  return names;
}

MetricId MetricNames::intern(std::string_view name, std::string_view unit, MetricKind kind, bool is_float) {
  FrameTable& strings = FrameTable::instance();
  const MetricName wanted{strings.intern_string(name), strings.intern_string(unit), kind, is_float};
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(metrics_.begin(), metrics_.end(),
                                  [&](const MetricName& metric) { return metric.name == wanted.name; });
  if (found == metrics_.end()) {
    metrics_.push_back(wanted);
    return static_cast<MetricId>(metrics_.size() - 1);
  }
  return *found == wanted ? static_cast<MetricId>(found - metrics_.begin()) : MetricId::None;
}

uint32_t MetricNames::size() {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(metrics_.size());
}

MetricName MetricNames::at(MetricId id) {
  const std::lock_guard lock(mutex_);
  return metrics_[number_of(id)];
}

}  // namespace bragg
