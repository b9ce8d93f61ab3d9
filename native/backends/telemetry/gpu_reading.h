// One reading of a GPU.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "backends/telemetry/quantities.h"

namespace bragg {

struct GpuReading {
  std::array<double, gpu_quantity::kCount> values;  // those that were not read are not finite
  std::optional<uint64_t> clock_reasons;
};

}  // namespace bragg
