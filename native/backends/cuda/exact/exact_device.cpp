#include "backends/cuda/exact/exact_device.h"

#include <cstdio>
#include <utility>

#include "backends/cuda/counters/counter_choice.h"
#include "data/json.h"

namespace bragg {
bool ExactDevice::refuse(const CuptiFailure& failure) {
  reason_ = counter_refusal(cupti_, failure.call, failure.result);
  std::fprintf(stderr, "bragg: no more launches on GPU %u are counted exactly, its kernels are timed as before: %s\n",
               device_, reason_.c_str());
  return false;
}

bool ExactDevice::open(const std::string& names) {
  if (const CuptiFailure failure = profiler_.look()) return refuse(failure);
  const std::vector<Counter> wanted = counters_of_range(names);
  std::vector<Counter> chosen;
  const auto choose = [&](const std::vector<std::string>& metrics, size_t& passes) {
    return profiler_.choose(ExactMetrics::with_duration(metrics), passes);
  };
  if (const CuptiFailure failure = choose_in_one_pass(wanted, choose, chosen)) return refuse(failure);
  left_out_ = left_out(wanted, chosen);
  if (!chosen.empty()) return metrics_ = std::make_unique<ExactMetrics>(std::move(chosen)), true;
  reason_ = profiler_.chip() + " has none of the counters that are wanted";
  std::fprintf(stderr, "bragg: no launches on GPU %u are counted exactly: %s\n", device_, reason_.c_str());
  return false;
}

bool ExactDevice::begin() {
  const CuptiFailure failure = profiler_.begin();
  return !failure || refuse(failure);
}

std::optional<std::vector<ExactMetrics::Value>> ExactDevice::end() {
  std::vector<double> values;
  if (const CuptiFailure failure = profiler_.end(values)) {
    refuse(failure);
    return std::nullopt;
  }
  if (values.empty()) return std::vector<ExactMetrics::Value>{};
  return metrics_->values_of(values);
}

std::string ExactDevice::description_json() const {
  JsonObject json;
  json.put("chip", profiler_.chip());
  if (!reason_.empty()) json.put("reason", reason_);
  json.raw("metrics", json_array(metrics_ != nullptr ? metrics_->names() : std::vector<std::string>{}, json_string));
  json.raw("left_out", json_array(left_out_, json_string));
  return json.text();
}

}  // namespace bragg
