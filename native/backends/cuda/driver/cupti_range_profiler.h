// Own declarations of CUPTI's range profiler, compared with the vendor's like those of cupti_abi.h. Sizes are those of
// the oldest release that has it, 12.6: later releases add fields at the end. A size is the end of the last field, not
// that of the struct.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/driver/cupti_pm_sampling.h"

namespace bragg::cupti {

enum class RangeMode : uint32_t { Auto = 1, User = 2 };  // a range is a kernel, or what the caller says
enum class ReplayMode : uint32_t { Application = 1, Kernel = 2, User = 3 };

struct RangeAvailabilityParams {
  size_t struct_size_bytes;
  void* reserved;
  cuda::Context context;
  size_t image_size_bytes;
  uint8_t* image;
};
static_assert(offsetof(RangeAvailabilityParams, image) == 32 && sizeof(RangeAvailabilityParams) == 40);

struct RangeEnableParams {
  size_t struct_size_bytes;
  void* reserved;
  cuda::Context context;
  void* profiler;
};
static_assert(sizeof(RangeEnableParams) == 32);

struct RangeConfigParams {
  size_t struct_size_bytes;
  void* reserved;
  void* profiler;
  size_t config_bytes;
  const uint8_t* config;
  size_t image_bytes;
  uint8_t* image;
  RangeMode range;
  ReplayMode replay;
  size_t max_ranges;
  uint16_t nesting_levels;
  uint16_t least_nesting_level;
  size_t pass;
  uint16_t target_nesting_level;
};
inline constexpr size_t kRangeConfigBytes = 90;
static_assert(offsetof(RangeConfigParams, max_ranges) == 64 && offsetof(RangeConfigParams, pass) == 80);
static_assert(offsetof(RangeConfigParams, target_nesting_level) == 88 && sizeof(RangeConfigParams) == 96);

struct RangeProfilerParams {  // of Start and Disable
  size_t struct_size_bytes;
  void* reserved;
  void* profiler;
};
static_assert(sizeof(RangeProfilerParams) == 24);

struct RangeStopParams {
  size_t struct_size_bytes;
  void* reserved;
  void* profiler;
  size_t pass;
  size_t target_nesting_level;
  uint8_t all_passes_submitted;
};
inline constexpr size_t kRangeStopBytes = 41;
static_assert(offsetof(RangeStopParams, all_passes_submitted) == 40 && sizeof(RangeStopParams) == 48);

struct RangeDecodeParams {
  size_t struct_size_bytes;
  void* reserved;
  void* profiler;
  size_t dropped_ranges;
};
static_assert(sizeof(RangeDecodeParams) == 32);

struct RangeDataSizeParams {
  size_t struct_size_bytes;
  void* reserved;
  void* profiler;
  const char** names;
  size_t count;
  size_t max_ranges;
  uint32_t max_tree_nodes;  // at least the ranges
  uint32_t padding;
  size_t size_bytes;
};
static_assert(offsetof(RangeDataSizeParams, size_bytes) == 56 && sizeof(RangeDataSizeParams) == 64);

struct RangeImageParams {
  size_t struct_size_bytes;
  void* reserved;
  void* profiler;
  size_t size_bytes;
  uint8_t* image;
};
static_assert(sizeof(RangeImageParams) == 40);

struct RangeDataInfoParams {
  size_t struct_size_bytes;
  void* reserved;
  const uint8_t* image;
  size_t size_bytes;
  size_t ranges;
};
static_assert(sizeof(RangeDataInfoParams) == 40);

using CuptiProfilerGetCounterAvailability = Result(RangeAvailabilityParams* params);
using CuptiRangeProfilerEnable = Result(RangeEnableParams* params);
using CuptiRangeProfilerSetConfig = Result(RangeConfigParams* params);
using CuptiRangeProfilerStart = Result(RangeProfilerParams* params);
using CuptiRangeProfilerStop = Result(RangeStopParams* params);
using CuptiRangeProfilerDisable = Result(RangeProfilerParams* params);
using CuptiRangeProfilerGetCounterDataSize = Result(RangeDataSizeParams* params);
using CuptiRangeProfilerCounterDataImageInitialize = Result(RangeImageParams* params);
using CuptiRangeProfilerDecodeData = Result(RangeDecodeParams* params);
using CuptiRangeProfilerGetCounterDataInfo = Result(RangeDataInfoParams* params);

}  // namespace bragg::cupti
