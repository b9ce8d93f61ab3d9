// What telemetry says of one phase of a session: means, extremes, energy.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "backends/telemetry/gpu_telemetry.h"
#include "backends/telemetry/host_telemetry.h"
#include "data/json.h"

namespace bragg {

struct ValueSum {
  uint64_t samples = 0;
  double sum = 0;
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  void add(double value) {
    if (!std::isfinite(value)) return;
    ++samples;
    sum += value;
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

// Energy by the counter of a GPU, which is read at borders alone: where a phase begins or ends, or recording is paused
// or resumed.
class EnergySum {
 public:
  struct Reading {
    uint64_t millijoules;
    int64_t time_ns;
  };
  // What was used since the border before; `goes_on`: more is to come.
  void border(const std::optional<Reading>& now, bool goes_on);

  [[nodiscard]] int64_t span_ns() const { return span_ns_; }
  [[nodiscard]] uint64_t millijoules() const { return millijoules_; }

 private:
  std::optional<Reading> begin_;
  uint64_t millijoules_ = 0;
  int64_t span_ns_ = 0;
};

struct GpuSums {
  std::array<ValueSum, gpu_quantity::kCount> values;
  std::array<uint64_t, kClockReasons.size()> held{};  // samples with each reason
  uint64_t reason_samples = 0;
  EnergySum energy;

  void add(const GpuReading& reading);
  void describe(JsonObject& json) const;
};

struct HostSums {
  std::array<ValueSum, host_quantity::kCount> values;
};

// {"power_w":{"samples":2,"mean":1,"least":1,"most":1},...}; of values without a sample nothing.
void describe_values(JsonObject& json, std::span<const Quantity> quantities, std::span<const ValueSum> values);

struct PhaseSums {
  int64_t begins_ns = 0;
  int64_t ends_ns = 0;  // kNever: it continues
  bool is_thrifty = false;
  int64_t interval_ns = 0;
  HostSums host;
  std::map<uint32_t, GpuSums> gpus;  // by ordinal

  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  [[nodiscard]] bool has_ended() const { return ends_ns != kNever; }
  // Readings come late.
  [[nodiscard]] bool covers(int64_t time_ns) const { return begins_ns <= time_ns && time_ns <= ends_ns; }
};

}  // namespace bragg
