// What telemetry reads: a row of a table each, with its name in META and its track.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "backends/telemetry/nvml_abi.h"

namespace bragg {

struct Quantity {
  std::string_view name;  // in META
  std::string_view track;
  std::string_view unit;
};

namespace gpu_quantity {
enum : size_t {
  kPower,
  kSmClock,
  kMemoryClock,
  kUtilization,
  kMemoryUtilization,
  kMemoryUsed,
  kTemperature,
  kPcieReceived,
  kPcieSent,
  kNvlinkReceived,
  kNvlinkSent,
  kCount
};
}  // namespace gpu_quantity

inline constexpr std::array<Quantity, gpu_quantity::kCount> kGpuQuantities{{
    {"power_w", "power", "W"},
    {"sm_clock_mhz", "SM clock", "MHz"},
    {"memory_clock_mhz", "memory clock", "MHz"},
    {"utilization_percent", "GPU utilization", "%"},
    {"memory_utilization_percent", "memory utilization", "%"},
    {"memory_used_bytes", "memory used", "B"},
    {"temperature_c", "temperature", "C"},
    {"pcie_received_bytes_per_s", "PCIe received", "B/s"},
    {"pcie_sent_bytes_per_s", "PCIe sent", "B/s"},
    {"nvlink_received_bytes_per_s", "NVLink received", "B/s"},
    {"nvlink_sent_bytes_per_s", "NVLink sent", "B/s"},
}};

namespace host_quantity {
enum : size_t {
  kCpu,
  kResident,
  kMinorFaults,
  kMajorFaults,
  kDiskRead,
  kDiskWritten,
  kNetworkReceived,
  kNetworkSent,
  kGroupMemory,
  kGroupThrottled,
  kCount
};
}  // namespace host_quantity

inline constexpr std::array<Quantity, host_quantity::kCount> kHostQuantities{{
    {"cpu_percent", "CPU of the process", "%"},  // 100: one core
    {"resident_bytes", "resident memory", "B"},
    {"minor_faults_per_s", "minor page faults", "1/s"},
    {"major_faults_per_s", "major page faults", "1/s"},
    {"disk_read_bytes_per_s", "disk read", "B/s"},
    {"disk_written_bytes_per_s", "disk written", "B/s"},
    {"network_received_bytes_per_s", "network received", "B/s"},  // of the network namespace
    {"network_sent_bytes_per_s", "network sent", "B/s"},
    {"cgroup_memory_bytes", "memory of the cgroup", "B"},
    {"cgroup_throttled_percent", "cgroup throttled", "%"},  // of the time, threads together: may exceed 100
}};

struct ClockReason {
  uint64_t bit;
  std::string_view name;
  std::string_view track;
};

inline constexpr std::array<ClockReason, 9> kClockReasons{{
    {nvml::reason::kIdle, "idle", "clocks: GPU idle"},
    {nvml::reason::kApplicationClocks, "application_clocks", "clocks held by application clocks"},
    {nvml::reason::kPowerCap, "power", "clocks held by power"},
    {nvml::reason::kHardwareSlowdown, "hardware", "clocks held by hardware slowdown"},
    {nvml::reason::kSyncBoost, "sync_boost", "clocks held by sync boost"},
    {nvml::reason::kThermal, "thermal", "clocks held by temperature"},
    {nvml::reason::kHardwareThermal, "hardware_thermal", "clocks held by temperature (hardware)"},
    {nvml::reason::kPowerBrake, "power_brake", "clocks held by power brake"},
    {nvml::reason::kDisplayClocks, "display_clocks", "clocks held by display"},
}};

inline constexpr double kNoReading = std::numeric_limits<double>::quiet_NaN();

template <size_t count>
constexpr std::array<double, count> no_readings() {
  std::array<double, count> values{};
  values.fill(kNoReading);
  return values;
}

}  // namespace bragg
