// The launches of one CUDA context that are counted exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/exact/exact_metrics.h"
#include "backends/cuda/exact/range_profiler.h"

namespace bragg {

// Threads: that which counts a launch.
class ExactDevice {
 public:
  ExactDevice(const CuptiLibrary& cupti, const RangeProfilerLibrary& library, cuda::Context context, uint32_t device)
      : cupti_(cupti), context_(context), device_(device), profiler_(library, context, device) {}

  // Which of the counters this chip has, in sets of one pass each: takes 0.3 s or more. False: `reason` says why there
  // are none.
  [[nodiscard]] bool open(const std::string& names);
  // From here to `end` the context's launch is counted. False: `reason` says why no more are.
  [[nodiscard]] bool begin(size_t set);
  // The launch's values; empty: others were launched beside it. nullopt: `reason` says why no more are counted.
  [[nodiscard]] std::optional<std::vector<ExactMetrics::Value>> end();
  void close() { profiler_.close(); }

  [[nodiscard]] cuda::Context context() const { return context_; }
  [[nodiscard]] uint32_t ordinal() const { return device_; }
  [[nodiscard]] size_t sets() const { return sets_.size(); }
  [[nodiscard]] size_t set() const { return profiler_.set(); }  // that was counted last: another one takes longer
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] std::string description_json() const;

 private:
  [[nodiscard]] CuptiFailure choose_sets(std::vector<Counter> wanted);
  bool refuse(const CuptiFailure& failure);

  const CuptiLibrary& cupti_;
  cuda::Context context_;
  uint32_t device_;
  RangeProfiler profiler_;
  std::vector<ExactMetrics> sets_;
  std::vector<std::string> left_out_;  // that this chip and release do not count in one pass
  std::string reason_;
};

}  // namespace bragg
