// One reading of a GPU.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "backends/telemetry/quantities.h"

namespace bragg {

struct GpuReading {
  std::array<double, gpu_quantity::kCount> values = no_readings<gpu_quantity::kCount>();
  std::optional<uint64_t> clock_reasons;
};

struct TimedReading {
  int64_t monotonic_ns;
  GpuReading reading;
};

}  // namespace bragg
