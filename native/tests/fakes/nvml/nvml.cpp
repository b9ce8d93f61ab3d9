// libnvidia-ml.so.1 of the virtual GPUs: the same UUIDs as in the fake driver. Power is what the knob says, the counter
// of energy is its integral, and what is kept of it are samples of every 20 ms of the system's clock. No clocks are
// kept, and a call that asks for samples after one brings that one, too. Settings beside the knobs nvml_*:
//   BRAGG_FAKE_NVML_LACKS="power,temperature": what the GPUs do not support, by the names below
//   BRAGG_FAKE_OMIT="nvmlDeviceGetFieldValues": symbols that are not there
//   BRAGG_FAKE_FAIL="nvmlInit_v2=9": calls that fail
//   BRAGG_FAKE_NVML_MIG=1: the UUIDs are those of instances
//   BRAGG_FAKE_NVML_KEPT="119": how many samples are kept
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "backends/telemetry/nvml_abi.h"
#include "link.h"
#include "settings.h"

namespace bragg::nvml {

struct DeviceHandle {
  uint32_t ordinal;
  bool is_instance;
};

}  // namespace bragg::nvml

namespace bragg::fake {
namespace {

using nvml::Result;

constexpr uint32_t kMostDevices = 8;
std::atomic<bool> is_initialized{false};
nvml::DeviceHandle devices[kMostDevices];

uint64_t system_us() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

uint64_t monotonic_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

bool is_listed(const char* list, const std::string& name) {
  return std::string(",").append(setting(list, "")).append(",").find("," + name + ",") != std::string::npos;
}

std::mutex calls_mutex;
std::map<std::string, int64_t>& calls() {
  static auto& self = *new std::map<std::string, int64_t>;
  return self;
}

// Whether a call works; NVML takes its time.
Result begin(const char* call, const char* quantity, nvml::Device device) {
  {
    const std::lock_guard lock(calls_mutex);
    ++calls()[call];
  }
  if (const int64_t slow_ms = knob(Knob::NvmlSlowMs)) usleep(static_cast<useconds_t>(slow_ms * 1000));
  take_cpu_time(knob(Knob::NvmlBusyUs) * 1000);
  if (const uint32_t failed = failure(call)) return static_cast<Result>(failed);
  if (!is_initialized.load()) return static_cast<Result>(1);
  if (device == nullptr) return Result::InvalidArgument;
  if (device->is_instance || is_listed("NVML_LACKS", quantity)) return Result::NotSupported;
  return Result::Success;
}

// Power since the library was loaded, as the knob was set.
class Power {
 public:
  void set(int64_t milliwatts) {
    const std::lock_guard lock(mutex_);
    changes_.push_back({system_us(), milliwatts});
  }
  int64_t at(uint64_t us) {
    const std::lock_guard lock(mutex_);
    return changed_before(us)->milliwatts;
  }
  uint64_t energy_mj() {
    const std::lock_guard lock(mutex_);
    uint64_t nanojoules = 0;
    for (size_t i = 0; i < changes_.size(); ++i) {
      const uint64_t until_us = i + 1 < changes_.size() ? changes_[i + 1].us : system_us();
      nanojoules += (until_us - changes_[i].us) * static_cast<uint64_t>(changes_[i].milliwatts);
    }
    return 5'000'000 + nanojoules / 1'000'000;
  }

 private:
  struct Change {
    uint64_t us;
    int64_t milliwatts;
  };
  std::vector<Change>::const_iterator changed_before(uint64_t us) const {
    const auto later = std::ranges::upper_bound(changes_, us, {}, &Change::us);
    return later == changes_.begin() ? later : later - 1;
  }

  std::mutex mutex_;
  std::vector<Change> changes_{{system_us(), knob(Knob::NvmlPowerMw)}};
};

Power& power() {
  static Power& self = *new Power;
  return self;
}

std::string uuid_of(uint32_t ordinal, const char* kind) {
  const std::string machine = setting("GPUS", std::to_string(getpid()).c_str());
  const uint64_t parts[] = {cubin_crc(machine.data(), machine.size()), ordinal};
  uint8_t bytes[sizeof parts];
  std::memcpy(bytes, parts, sizeof parts);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = kind;
  for (size_t i = 0; i < sizeof bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text.append({kDigits[bytes[i] >> 4], kDigits[bytes[i] & 15]});
  }
  return text;
}

Result field_value(nvml::Device device, nvml::FieldValue& value) {
  const auto tell = [&](const char* quantity, nvml::ValueType type, uint64_t bits) {
    if (is_listed("NVML_LACKS", quantity)) return Result::NotSupported;
    value.type = type;
    value.value.u64 = 0;
    if (type == nvml::ValueType::UnsignedInt) {
      value.value.u32 = static_cast<uint32_t>(bits);
    } else {
      value.value.u64 = bits;
    }
    return Result::Success;
  };
  const uint64_t us = monotonic_us();
  switch (value.field) {
    case nvml::Field::PowerNowMw:
      return tell("instant_power", nvml::ValueType::UnsignedInt, static_cast<uint64_t>(knob(Knob::NvmlPowerMw)));
    case nvml::Field::PcieReceivedBytes:  // 2 GB/s
      return tell("pcie", nvml::ValueType::UnsignedLongLong, us * 2000);
    case nvml::Field::PcieSentBytes:  // 1 GB/s
      return tell("pcie", nvml::ValueType::UnsignedLongLong, us * 1000);
    case nvml::Field::NvlinkReceivedKib:
    case nvml::Field::NvlinkSentKib:
      if (value.scope != nvml::kAllLinks || device->ordinal != 0) return Result::InvalidArgument;
      return tell("nvlink", nvml::ValueType::UnsignedLongLong, us * 10);
    default:
      return Result::InvalidArgument;
  }
}

#define FAKE_NVML(name, type)                                                            \
  extern "C" bragg::nvml::type* resolve_##name() {                                       \
    return bragg::fake::is_listed("OMIT", #name) ? nullptr : &bragg::fake::name##_works; \
  }                                                                                      \
  extern "C" __attribute__((visibility("default"), ifunc("resolve_" #name))) bragg::nvml::type name;

Result nvmlInit_v2_works() {
  if (const uint32_t failed = failure("nvmlInit_v2")) return static_cast<Result>(failed);
  for (uint32_t i = 0; i < kMostDevices; ++i) devices[i] = {i, false};
  is_initialized.store(true);
  return Result::Success;
}

const char* nvmlErrorString_works(Result result) {
  switch (static_cast<uint32_t>(result)) {
    case 0:
      return "Success";
    case 2:
      return "Invalid Argument";
    case 3:
      return "Not Supported";
    case 4:
      return "Insufficient Permissions";
    case 6:
      return "Not Found";
    case 9:
      return "Driver Not Loaded";
    default:
      return "Unknown Error";
  }
}

Result nvmlSystemGetDriverVersion_works(char* text, uint32_t size) {
  constexpr char kVersion[] = "580.82.07";
  if (size < sizeof kVersion) return static_cast<Result>(7);
  std::memcpy(text, kVersion, sizeof kVersion);
  return Result::Success;
}

Result nvmlDeviceGetHandleByUUID_works(const char* uuid, nvml::Device* device) {
  if (!is_initialized.load()) return static_cast<Result>(1);
  const bool is_mig = setting("NVML_MIG", "0") == "1";
  for (uint32_t i = 0; i < knob(Knob::Devices) && i < kMostDevices; ++i) {
    if (uuid != uuid_of(i, is_mig ? "MIG-" : "GPU-")) continue;
    devices[i].is_instance = is_mig;
    *device = &devices[i];
    return Result::Success;
  }
  return Result::NotFound;
}

Result nvmlDeviceGetHandleByIndex_v2_works(uint32_t index, nvml::Device* device) {
  if (!is_initialized.load()) return static_cast<Result>(1);
  if (index >= knob(Knob::Devices) || index >= kMostDevices) return Result::InvalidArgument;
  *device = &devices[index];
  return Result::Success;
}

Result nvmlDeviceGetFieldValues_works(nvml::Device device, int32_t count, nvml::FieldValue* values) {
  if (const Result result = begin("nvmlDeviceGetFieldValues", "fields", device); result != Result::Success)
    return result;
  for (int32_t i = 0; i < count; ++i) values[i].result = field_value(device, values[i]);
  return Result::Success;
}

Result nvmlDeviceGetSamples_works(nvml::Device device, nvml::Kept kind, uint64_t last_seen_us, nvml::ValueType* type,
                                  uint32_t* count, nvml::Sample* samples) {
  constexpr uint64_t kStepUs = 20'000;
  if (const Result result = begin("nvmlDeviceGetSamples", "samples", device); result != Result::Success) return result;
  if (kind != nvml::Kept::TotalPower) return Result::NotFound;
  const auto kept = static_cast<uint32_t>(std::stoul(setting("NVML_KEPT", "119")));
  *type = nvml::ValueType::UnsignedInt;
  if (samples == nullptr) {
    *count = kept + 1;
    return Result::Success;
  }
  const uint64_t last = system_us() / kStepUs;
  uint32_t written = 0;
  for (uint64_t step = std::max<uint64_t>(last - kept + 1, last_seen_us / kStepUs); step <= last && written < *count;
       ++step) {
    samples[written].time_us = step * kStepUs;
    samples[written].value.u64 = ~uint64_t{0};  // only half of it is the value
    samples[written++].value.u32 = static_cast<uint32_t>(power().at(step * kStepUs));
  }
  const bool is_new = written > 1 || (written == 1 && samples[0].time_us > last_seen_us);
  *count = is_new ? written : *count;
  return is_new ? Result::Success : Result::NotFound;
}

Result nvmlDeviceGetPowerUsage_works(nvml::Device device, uint32_t* milliwatts) {
  *milliwatts = static_cast<uint32_t>(knob(Knob::NvmlPowerMw));
  return begin("nvmlDeviceGetPowerUsage", "power", device);
}

Result nvmlDeviceGetClockInfo_works(nvml::Device device, nvml::Clock clock, uint32_t* mhz) {
  *mhz = clock == nvml::Clock::Sm ? static_cast<uint32_t>(knob(Knob::NvmlSmMhz)) : 3201;
  return begin("nvmlDeviceGetClockInfo", "clocks", device);
}

Result nvmlDeviceGetUtilizationRates_works(nvml::Device device, nvml::Utilization* utilization) {
  *utilization = {97, 40};
  return begin("nvmlDeviceGetUtilizationRates", "utilization", device);
}

Result nvmlDeviceGetMemoryInfo_works(nvml::Device device, nvml::Memory* memory) {
  *memory = {80ull << 30, 60ull << 30, 20ull << 30};
  return begin("nvmlDeviceGetMemoryInfo", "memory", device);
}

Result nvmlDeviceGetTemperature_works(nvml::Device device, nvml::Sensor, uint32_t* celsius) {
  *celsius = 61;
  return begin("nvmlDeviceGetTemperature", "temperature", device);
}

Result nvmlDeviceGetCurrentClocksEventReasons_works(nvml::Device device, uint64_t* reasons) {
  *reasons = static_cast<uint64_t>(knob(Knob::NvmlReasons));
  return begin("nvmlDeviceGetCurrentClocksEventReasons", "reasons", device);
}

Result nvmlDeviceGetCurrentClocksThrottleReasons_works(nvml::Device device, uint64_t* reasons) {
  *reasons = static_cast<uint64_t>(knob(Knob::NvmlReasons));
  return begin("nvmlDeviceGetCurrentClocksThrottleReasons", "reasons", device);
}

Result nvmlDeviceGetTotalEnergyConsumption_works(nvml::Device device, uint64_t* millijoules) {
  const Result result = begin("nvmlDeviceGetTotalEnergyConsumption", "energy", device);
  *millijoules = power().energy_mj();
  return result;
}

}  // namespace
}  // namespace bragg::fake

FAKE_NVML(nvmlInit_v2, Init)
FAKE_NVML(nvmlErrorString, ErrorString)
FAKE_NVML(nvmlSystemGetDriverVersion, DriverVersion)
FAKE_NVML(nvmlDeviceGetHandleByUUID, HandleByUuid)
extern "C" __attribute__((visibility("default"))) bragg::nvml::Result nvmlDeviceGetHandleByIndex_v2(
    uint32_t index, bragg::nvml::Device* device) {
  return bragg::fake::nvmlDeviceGetHandleByIndex_v2_works(index, device);
}
FAKE_NVML(nvmlDeviceGetFieldValues, FieldValues)
FAKE_NVML(nvmlDeviceGetSamples, Samples)
FAKE_NVML(nvmlDeviceGetPowerUsage, PowerUsage)
FAKE_NVML(nvmlDeviceGetClockInfo, ClockInfo)
FAKE_NVML(nvmlDeviceGetUtilizationRates, UtilizationRates)
FAKE_NVML(nvmlDeviceGetMemoryInfo, MemoryInfo)
FAKE_NVML(nvmlDeviceGetTemperature, Temperature)
FAKE_NVML(nvmlDeviceGetCurrentClocksEventReasons, ClockReasons)
FAKE_NVML(nvmlDeviceGetCurrentClocksThrottleReasons, ClockReasons)
FAKE_NVML(nvmlDeviceGetTotalEnergyConsumption, TotalEnergy)

BRAGG_FAKE_EXPORT bool bragg_fake_nvml_set(const char* name, int64_t value) {
  const bool is_set = bragg::fake::set_knob(name, value);
  if (std::string_view(name) == "nvml_power_mw") bragg::fake::power().set(value);
  return is_set;
}

// How often a function was called so far.
BRAGG_FAKE_EXPORT int64_t bragg_fake_nvml_calls(const char* name) {
  const std::lock_guard lock(bragg::fake::calls_mutex);
  return bragg::fake::calls()[name];
}
