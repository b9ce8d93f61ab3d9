#include "backends/telemetry/nvml_library.h"

namespace bragg {

bool NvmlLibrary::load(std::string& reason) {
  library = LoadedLibrary::open("libnvidia-ml.so.1");
  if (!library) {
    reason = "libnvidia-ml.so.1 was not found: it comes with the driver";
    return false;
  }
  auto* init = library.function<nvml::Init>("nvmlInit_v2");
  error_string = library.function<nvml::ErrorString>("nvmlErrorString");
  handle_by_uuid = library.function<nvml::HandleByUuid>("nvmlDeviceGetHandleByUUID");
  field_values = library.function<nvml::FieldValues>("nvmlDeviceGetFieldValues");
  samples = library.function<nvml::Samples>("nvmlDeviceGetSamples");
  power_usage = library.function<nvml::PowerUsage>("nvmlDeviceGetPowerUsage");
  clock_info = library.function<nvml::ClockInfo>("nvmlDeviceGetClockInfo");
  utilization = library.function<nvml::UtilizationRates>("nvmlDeviceGetUtilizationRates");
  memory_info = library.function<nvml::MemoryInfo>("nvmlDeviceGetMemoryInfo");
  temperature = library.function<nvml::Temperature>("nvmlDeviceGetTemperature");
  clock_reasons = library.function<nvml::ClockReasons>("nvmlDeviceGetCurrentClocksEventReasons");
  if (clock_reasons == nullptr)  // its name before 535
    clock_reasons = library.function<nvml::ClockReasons>("nvmlDeviceGetCurrentClocksThrottleReasons");
  total_energy = library.function<nvml::TotalEnergy>("nvmlDeviceGetTotalEnergyConsumption");
  if (init == nullptr || handle_by_uuid == nullptr) {
    reason = "libnvidia-ml.so.1 lacks nvmlInit_v2 or nvmlDeviceGetHandleByUUID";
    return false;
  }
  if (const nvml::Result result = init(); result != nvml::Result::Success) {
    reason = "nvmlInit_v2 failed: " + failure(result);
    return false;
  }
  char version[96] = "";
  auto* get_version = library.function<nvml::DriverVersion>("nvmlSystemGetDriverVersion");
  if (get_version != nullptr && get_version(version, sizeof version) == nvml::Result::Success) driver_version = version;
  return true;
}

std::string NvmlLibrary::failure(nvml::Result result) const {
  const char* text = error_string != nullptr ? error_string(result) : nullptr;
  return std::string(text != nullptr ? text : "NVML error") + " (" + std::to_string(static_cast<uint32_t>(result)) +
         ")";
}

}  // namespace bragg
