// NVML of the driver, loaded at run time.
#pragma once

#include <string>

#include "backends/telemetry/nvml_abi.h"
#include "context/loaded_library.h"

namespace bragg {

// Functions that a release lacks are nullptr; without those of `load` there is no telemetry.
struct NvmlLibrary {
  LoadedLibrary library;
  std::string driver_version;
  nvml::ErrorString* error_string = nullptr;
  nvml::HandleByUuid* handle_by_uuid = nullptr;
  nvml::FieldValues* field_values = nullptr;
  nvml::Samples* samples = nullptr;
  nvml::PowerUsage* power_usage = nullptr;
  nvml::ClockInfo* clock_info = nullptr;
  nvml::UtilizationRates* utilization = nullptr;
  nvml::MemoryInfo* memory_info = nullptr;
  nvml::Temperature* temperature = nullptr;
  nvml::ClockReasons* clock_reasons = nullptr;
  nvml::TotalEnergy* total_energy = nullptr;

  // Threads: that of telemetry, since NVML may hang where a GPU does. False: `reason` says why. Takes some 10 ms.
  [[nodiscard]] bool load(std::string& reason);
  // "Not Supported (3)"
  [[nodiscard]] std::string failure(nvml::Result result) const;
};

}  // namespace bragg
