// Own declarations of CUPTI's PM sampling and of the host functions that choose and evaluate its metrics, compared with
// the vendor's like those of cupti_abi.h. Sizes are those of the oldest release that has a call, 12.6, except where a
// field of a later one is needed: later releases add fields at the end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/driver/cupti_abi.h"
#include "backends/cuda/driver/cupti_pc_sampling.h"

namespace bragg::cupti {

enum class ProfilerType : uint32_t { Range = 0, PmSampling = 1 };
enum class TriggerMode : uint32_t { SysClock = 0, GpuTime = 1 };  // cycles, ns
enum class DecodeStop : uint32_t { Other = 0, ImageFull = 1, EndOfRecords = 2 };

struct ChipNameParams {
  size_t struct_size_bytes;
  void* reserved;
  size_t device;
  const char* chip;
};
static_assert(offsetof(ChipNameParams, chip) == 24 && sizeof(ChipNameParams) == 32);

struct HostInitializeParams {
  size_t struct_size_bytes;
  void* reserved;
  ProfilerType type;
  uint32_t padding;
  const char* chip;
  const uint8_t* availability;
  void* host;
};
static_assert(offsetof(HostInitializeParams, host) == 40 && sizeof(HostInitializeParams) == 48);

struct HostParams {
  size_t struct_size_bytes;
  void* reserved;
  void* host;
};
static_assert(sizeof(HostParams) == 24);

struct HostAddMetricsParams {
  size_t struct_size_bytes;
  void* reserved;
  void* host;
  const char** names;
  size_t count;
};
static_assert(sizeof(HostAddMetricsParams) == 40);

struct HostBaseMetricsParams {
  size_t struct_size_bytes;
  void* reserved;
  void* host;
  uint32_t type;  // counters, ratios, throughputs
  uint32_t padding;
  const char** names;
  size_t count;
};
static_assert(offsetof(HostBaseMetricsParams, count) == 40 && sizeof(HostBaseMetricsParams) == 48);

struct HostImageSizeParams {
  size_t struct_size_bytes;
  void* reserved;
  void* host;
  size_t size_bytes;
};
static_assert(sizeof(HostImageSizeParams) == 32);

struct HostImageParams {
  size_t struct_size_bytes;
  void* reserved;
  void* host;
  size_t size_bytes;
  uint8_t* image;
};
static_assert(sizeof(HostImageParams) == 40);

struct HostPassesParams {
  size_t struct_size_bytes;
  void* reserved;
  size_t size_bytes;
  uint8_t* image;
  size_t passes;
};
static_assert(sizeof(HostPassesParams) == 40);

struct HostEvaluateParams {
  size_t struct_size_bytes;
  void* reserved;
  void* host;
  const uint8_t* data;
  size_t data_bytes;
  size_t sample;
  const char** names;
  size_t count;
  double* values;
};
static_assert(offsetof(HostEvaluateParams, values) == 64 && sizeof(HostEvaluateParams) == 72);

struct PmEnableParams {
  size_t struct_size_bytes;
  void* reserved;
  size_t device;
  void* sampler;
};
static_assert(sizeof(PmEnableParams) == 32);

struct PmConfigParams {  // 12.6 knows it without `append_mode`, of 60 bytes: that is KEEP_OLDEST
  size_t struct_size_bytes;
  void* reserved;
  void* sampler;
  size_t config_bytes;
  const uint8_t* config;  // CUPTI keeps the pointer until the sampler is disabled
  size_t hardware_buffer_bytes;
  uint64_t interval;
  TriggerMode trigger;
  uint32_t append_mode;
};
inline constexpr size_t kPmConfigBytes = 60;
static_assert(offsetof(PmConfigParams, trigger) == 56 && sizeof(PmConfigParams) == 64);

struct PmSamplerParams {  // of Start, Stop and Disable
  size_t struct_size_bytes;
  void* reserved;
  void* sampler;
};
static_assert(sizeof(PmSamplerParams) == 24);

struct PmDataSizeParams {
  size_t struct_size_bytes;
  void* reserved;
  void* sampler;
  const char** names;
  size_t count;
  uint32_t max_samples;
  uint32_t padding;
  size_t size_bytes;
};
static_assert(offsetof(PmDataSizeParams, size_bytes) == 48 && sizeof(PmDataSizeParams) == 56);

struct PmImageParams {
  size_t struct_size_bytes;
  void* reserved;
  void* sampler;
  size_t size_bytes;
  uint8_t* image;
};
static_assert(sizeof(PmImageParams) == 40);

struct PmDecodeParams {
  size_t struct_size_bytes;
  void* reserved;
  void* sampler;
  uint8_t* image;
  size_t size_bytes;
  DecodeStop stop;
  uint8_t overflow;
};
inline constexpr size_t kPmDecodeBytes = 45;
static_assert(offsetof(PmDecodeParams, overflow) == 44 && sizeof(PmDecodeParams) == 48);

struct PmDataInfoParams {
  size_t struct_size_bytes;
  void* reserved;
  uint8_t* image;
  size_t size_bytes;
  size_t total;
  size_t populated;
  size_t completed;
};
static_assert(offsetof(PmDataInfoParams, completed) == 48 && sizeof(PmDataInfoParams) == 56);

struct PmSampleInfoParams {
  size_t struct_size_bytes;
  void* reserved;
  void* sampler;
  uint8_t* image;
  size_t size_bytes;
  size_t sample;
  uint64_t start_ns;
  uint64_t end_ns;
};
static_assert(offsetof(PmSampleInfoParams, end_ns) == 56 && sizeof(PmSampleInfoParams) == 64);

using CuptiDeviceGetChipName = Result(ChipNameParams* params);
using CuptiProfilerHostInitialize = Result(HostInitializeParams* params);
using CuptiProfilerHostDeinitialize = Result(HostParams* params);
using CuptiProfilerHostConfigAddMetrics = Result(HostAddMetricsParams* params);
using CuptiProfilerHostGetBaseMetrics = Result(HostBaseMetricsParams* params);
using CuptiProfilerHostGetConfigImageSize = Result(HostImageSizeParams* params);
using CuptiProfilerHostGetConfigImage = Result(HostImageParams* params);
using CuptiProfilerHostGetNumOfPasses = Result(HostPassesParams* params);
using CuptiProfilerHostEvaluateToGpuValues = Result(HostEvaluateParams* params);
using CuptiPmSamplingEnable = Result(PmEnableParams* params);
using CuptiPmSamplingSetConfig = Result(PmConfigParams* params);
using CuptiPmSamplingStart = Result(PmSamplerParams* params);
using CuptiPmSamplingStop = Result(PmSamplerParams* params);
using CuptiPmSamplingDisable = Result(PmSamplerParams* params);
using CuptiPmSamplingGetCounterDataSize = Result(PmDataSizeParams* params);
using CuptiPmSamplingCounterDataImageInitialize = Result(PmImageParams* params);
using CuptiPmSamplingDecodeData = Result(PmDecodeParams* params);
using CuptiPmSamplingGetCounterDataInfo = Result(PmDataInfoParams* params);
using CuptiPmSamplingCounterDataGetSampleInfo = Result(PmSampleInfoParams* params);

}  // namespace bragg::cupti
