// The part of NVML's C ABI that is used, declared by ourselves. Numbers and layouts: NVML API Reference Guide, and the
// declarations of the Python package nvidia-ml-py 13.580 (pynvml.py), which a test compares with these.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bragg::nvml {

enum class Result : uint32_t {
  Success = 0,
  InvalidArgument = 2,
  NotSupported = 3,
  NoPermission = 4,
  NotFound = 6,
  GpuIsLost = 15,
};

struct DeviceHandle;
using Device = DeviceHandle*;

enum class Clock : uint32_t { Sm = 1, Memory = 2 };
enum class Sensor : uint32_t { Gpu = 0 };
enum class Kept : uint32_t { TotalPower = 0 };

enum class Field : uint32_t {
  NvlinkSentKib = 138,      // scope: link, kAllLinks for the sum
  NvlinkReceivedKib = 139,  // scope: as above
  PowerNowMw = 186,
  PcieSentBytes = 197,  // may wrap
  PcieReceivedBytes = 198,
};
inline constexpr uint32_t kAllLinks = 0xFFFFFFFF;

enum class ValueType : uint32_t {
  Double = 0,
  UnsignedInt = 1,
  UnsignedLong = 2,
  UnsignedLongLong = 3,
  SignedLongLong = 4,
  SignedInt = 5,
  UnsignedShort = 6,
};

union Value {
  double real;
  uint32_t u32;
  uint64_t u64;
  int64_t i64;
  int32_t i32;
  uint16_t u16;
};

struct FieldValue {
  Field field;
  uint32_t scope;
  int64_t time_us;
  int64_t latency_us;
  ValueType type;
  Result result;
  Value value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, type) == 24 && offsetof(FieldValue, value) == 32);

struct Sample {
  uint64_t time_us;  // since the epoch
  Value value;
};
static_assert(sizeof(Sample) == 16 && offsetof(Sample, value) == 8);

struct Utilization {
  uint32_t gpu_percent;     // of the last 1/6 to 1 s: a kernel ran
  uint32_t memory_percent;  // memory was read or written
};

struct Memory {
  uint64_t total_bytes;
  uint64_t free_bytes;
  uint64_t used_bytes;
};

// Bits of the reasons why clocks are lower than they could be.
namespace reason {
inline constexpr uint64_t kIdle = 0x1;
inline constexpr uint64_t kApplicationClocks = 0x2;
inline constexpr uint64_t kPowerCap = 0x4;
inline constexpr uint64_t kHardwareSlowdown = 0x8;
inline constexpr uint64_t kSyncBoost = 0x10;
inline constexpr uint64_t kThermal = 0x20;
inline constexpr uint64_t kHardwareThermal = 0x40;
inline constexpr uint64_t kPowerBrake = 0x80;
inline constexpr uint64_t kDisplayClocks = 0x100;
}  // namespace reason

using Init = Result();
using ErrorString = const char*(Result);
using DriverVersion = Result(char* text, uint32_t size);
using HandleByUuid = Result(const char* uuid, Device* device);
using FieldValues = Result(Device device, int32_t count, FieldValue* values);
// Those after `last_seen_us` that the driver has kept; 0: all. NotFound: none has come. As many as `count` are written,
// and it becomes their number; without `samples` it becomes how many there can be.
using Samples = Result(Device device, Kept kind, uint64_t last_seen_us, ValueType* type, uint32_t* count,
                       Sample* samples);
using PowerUsage = Result(Device device, uint32_t* milliwatts);
using ClockInfo = Result(Device device, Clock clock, uint32_t* mhz);
using UtilizationRates = Result(Device device, Utilization* utilization);
using MemoryInfo = Result(Device device, Memory* memory);
using Temperature = Result(Device device, Sensor sensor, uint32_t* celsius);
using ClockReasons = Result(Device device, uint64_t* reasons);
using TotalEnergy = Result(Device device, uint64_t* millijoules);

}  // namespace bragg::nvml
