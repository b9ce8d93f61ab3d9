// Own declarations of CUPTI's SASS metrics, compared with the vendor's like those of cupti_abi.h. A size is the end of
// the last field, not that of the struct.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/driver/cupti_abi.h"

namespace bragg::cupti {

inline constexpr uint8_t kOfWholeGpu = 0;  // one value for each metric and instruction

struct SassMetricParams {
  size_t struct_size_bytes;
  void* reserved;
  const char* chip;
  const char* name;
  uint64_t metric;
  const char* listed_name;
  const char* description;
};
static_assert(offsetof(SassMetricParams, metric) == 32 && sizeof(SassMetricParams) == 56);

struct SassMetricConfig {
  uint64_t metric;
  uint8_t granularity;
};
static_assert(sizeof(SassMetricConfig) == 16);

struct SassConfigParams {
  size_t struct_size_bytes;
  void* reserved;
  size_t count;
  SassMetricConfig* configs;
  uint32_t device;
};
inline constexpr size_t kSassConfigBytes = 36;
static_assert(offsetof(SassConfigParams, device) == 32);

struct SassUnsetParams {
  size_t struct_size_bytes;
  void* reserved;
  uint32_t device;
};
inline constexpr size_t kSassUnsetBytes = 20;
static_assert(offsetof(SassUnsetParams, device) == 16);

struct SassEnableParams {
  size_t struct_size_bytes;
  void* reserved;
  cuda::Context context;
  uint8_t patches_at_launch;
};
inline constexpr size_t kSassEnableBytes = 25;
static_assert(offsetof(SassEnableParams, patches_at_launch) == 24);

struct SassDisableParams {
  size_t struct_size_bytes;
  void* reserved;
  cuda::Context context;
  size_t dropped_records;
};
static_assert(sizeof(SassDisableParams) == 32);

struct SassDataParams {
  size_t struct_size_bytes;
  void* reserved;
  cuda::Context context;
  size_t records;
  size_t values;  // of each record
};
static_assert(sizeof(SassDataParams) == 40);

struct SassValue {
  uint64_t metric;
  uint64_t value;
};
static_assert(sizeof(SassValue) == 16);

struct SassRecord {
  size_t struct_size_bytes;  // kSassFlushBytes
  void* reserved;
  uint32_t cubin_crc;
  uint32_t function_index;
  const char* function;
  uint32_t pc_offset;
  SassValue* values;
};
static_assert(offsetof(SassRecord, function) == 24 && offsetof(SassRecord, values) == 40 && sizeof(SassRecord) == 48);

struct SassFlushParams {
  size_t struct_size_bytes;
  void* reserved;
  cuda::Context context;
  size_t records;
  size_t values;
  SassRecord* data;
};
inline constexpr size_t kSassFlushBytes = 40;  // without the last field
static_assert(offsetof(SassFlushParams, data) == 40 && sizeof(SassFlushParams) == 48);

using CuptiSassMetricsGetProperties = Result(SassMetricParams* params);
using CuptiSassMetricsSetConfig = Result(SassConfigParams* params);
using CuptiSassMetricsUnsetConfig = Result(SassUnsetParams* params);
using CuptiSassMetricsEnable = Result(SassEnableParams* params);
using CuptiSassMetricsDisable = Result(SassDisableParams* params);
using CuptiSassMetricsGetDataProperties = Result(SassDataParams* params);
using CuptiSassMetricsFlushData = Result(SassFlushParams* params);

}  // namespace bragg::cupti
