// Own declarations of CUPTI's PC sampling, compared with the vendor's like those of cupti_abi.h. Every struct begins
// with its size, which tells CUPTI what the caller knows of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/driver/cupti_abi.h"

namespace bragg::cupti {

enum class CollectionMode : uint32_t {
  Continuous = 1,  // kernels run as they would; samples have no correlation id
  Serialized = 2,  // one kernel at a time, with its correlation id
};

enum class SamplingAttribute : uint32_t {
  Period = 1,  // uint32_t: 2^n cycles, n from 5 to 31
  HardwareBufferBytes = 4,
  Mode = 5,              // CollectionMode
  StartStopControl = 6,  // uint32_t: 1: nothing is sampled outside of cuptiPCSamplingStart and Stop
  DataBuffer = 8,        // SamplingData*: what Disable leaves over
  WorkerSleepMs = 9,     // uint32_t: how often CUPTI's threads decode the hardware's buffer
};

inline constexpr uint32_t kMinSamplingPeriod = 5;
inline constexpr uint32_t kMaxSamplingPeriod = 31;
inline constexpr size_t kStallReasonNameBytes = 128;

// Samples of one instruction with one stall reason.
struct StallSamples {
  uint32_t reason;
  uint32_t samples;
};
static_assert(offsetof(StallSamples, samples) == 4 && sizeof(StallSamples) == 8);

struct PcSamples {
  size_t struct_size_bytes;
  uint64_t cubin_crc;
  uint64_t pc_offset;       // from the beginning of the function
  uint32_t function_index;  // symbol number in the cubin
  uint32_t padding;
  char* function_name;
  size_t reason_count;  // at calling: how many `reasons` has room for
  StallSamples* reasons;
  uint32_t correlation;  // from 12.4
};
static_assert(offsetof(PcSamples, function_name) == 32 && offsetof(PcSamples, reasons) == 48);
static_assert(offsetof(PcSamples, correlation) == 56 && sizeof(PcSamples) == 64);
inline constexpr size_t kPcSamplesBytes = sizeof(PcSamples);

struct SamplingData {
  size_t struct_size_bytes;
  size_t capacity_pcs;       // how many `pcs` has room for
  uint64_t total_samples;    // with those of kernels that are not the program's, and dropped ones
  uint64_t dropped_samples;  // by the hardware
  size_t pc_count;
  size_t remaining_pcs;  // that wait for the next call
  uint64_t range_id;
  PcSamples* pcs;
  uint64_t other_samples;  // of kernels that are not the program's
  uint8_t hardware_buffer_full;
  uint8_t padding[7];
};
static_assert(offsetof(SamplingData, pcs) == 56 && offsetof(SamplingData, hardware_buffer_full) == 72);
static_assert(sizeof(SamplingData) == 80);

struct SamplingParams {  // of Enable, Disable, Start and Stop
  size_t struct_size_bytes;
  void* reserved;
  cuda::Context context;
};
static_assert(sizeof(SamplingParams) == 24);

struct SamplingDataParams {
  size_t struct_size_bytes;
  void* reserved;
  cuda::Context context;
  SamplingData* data;
};
static_assert(offsetof(SamplingDataParams, data) == 24 && sizeof(SamplingDataParams) == 32);

struct SamplingSetting {
  SamplingAttribute attribute;
  Result result;
  uint64_t value;
  uint64_t unused[2];
};
static_assert(offsetof(SamplingSetting, value) == 8 && sizeof(SamplingSetting) == 32);

struct SamplingConfiguration {
  size_t struct_size_bytes;
  void* reserved;
  cuda::Context context;
  size_t setting_count;
  SamplingSetting* settings;
};
static_assert(offsetof(SamplingConfiguration, settings) == 32 && sizeof(SamplingConfiguration) == 40);

struct StallReasonCount {
  size_t struct_size_bytes;
  void* reserved;
  cuda::Context context;
  size_t* count;
};
static_assert(offsetof(StallReasonCount, count) == 24 && sizeof(StallReasonCount) == 32);

struct StallReasonNames {
  size_t struct_size_bytes;
  void* reserved;
  cuda::Context context;
  size_t count;
  uint32_t* numbers;
  char** names;  // kStallReasonNameBytes each
};
static_assert(offsetof(StallReasonNames, names) == 40 && sizeof(StallReasonNames) == 48);

struct CubinCrcParams {
  size_t struct_size_bytes;
  size_t cubin_size_bytes;
  const void* cubin;
  uint64_t crc;
};
static_assert(offsetof(CubinCrcParams, crc) == 24 && sizeof(CubinCrcParams) == 32);

// ResourceData::descriptor of kModuleLoaded and kModuleUnloadStarting.
struct ModuleData {
  uint32_t id;
  size_t cubin_size_bytes;
  const char* cubin;
};
static_assert(offsetof(ModuleData, cubin) == 16 && sizeof(ModuleData) == 24);

// From 12.6. Never undone: CUPTI's own reference count is none, and a second DeInitialize crashes.
struct ProfilerInitializeParams {
  size_t struct_size_bytes;
  void* reserved;
};
static_assert(sizeof(ProfilerInitializeParams) == 16);

// From 12.6. With no image CUPTI tells its size; with one it looks at the hardware.
struct CounterAvailabilityParams {
  size_t struct_size_bytes;
  void* reserved;
  size_t device;
  size_t image_size_bytes;
  uint8_t* image;
};
static_assert(offsetof(CounterAvailabilityParams, image) == 32 && sizeof(CounterAvailabilityParams) == 40);

using CuptiProfilerInitialize = Result(ProfilerInitializeParams* params);
using CuptiPmSamplingGetCounterAvailability = Result(CounterAvailabilityParams* params);
using CuptiPCSamplingEnable = Result(SamplingParams* params);
using CuptiPCSamplingDisable = Result(SamplingParams* params);
using CuptiPCSamplingStart = Result(SamplingParams* params);
using CuptiPCSamplingStop = Result(SamplingParams* params);
using CuptiPCSamplingGetData = Result(SamplingDataParams* params);
using CuptiPCSamplingSetConfigurationAttribute = Result(SamplingConfiguration* params);
using CuptiPCSamplingGetNumStallReasons = Result(StallReasonCount* params);
using CuptiPCSamplingGetStallReasons = Result(StallReasonNames* params);
using CuptiGetCubinCrc = Result(CubinCrcParams* params);

}  // namespace bragg::cupti
