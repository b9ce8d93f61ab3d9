// The functions of a loaded CUPTI that count what the hardware does: samples of the whole GPU, or one launch exactly.
#pragma once

#include <string>
#include <string_view>

#include "backends/cuda/driver/cupti_library.h"
#include "backends/cuda/driver/cupti_pm_sampling.h"
#include "backends/cuda/driver/cupti_range_profiler.h"
#include "backends/cuda/driver/cupti_sass_metrics.h"

namespace bragg {

// Those that choose and evaluate metrics, which PM sampling and the range profiler share.
struct ProfilerHostLibrary {
  cupti::CuptiProfilerInitialize* initialize_profiler = nullptr;
  cupti::CuptiDeviceGetChipName* chip_name = nullptr;
  cupti::CuptiProfilerHostInitialize* host_initialize = nullptr;
  cupti::CuptiProfilerHostDeinitialize* host_deinitialize = nullptr;
  cupti::CuptiProfilerHostConfigAddMetrics* add_metrics = nullptr;
  cupti::CuptiProfilerHostGetBaseMetrics* base_metrics = nullptr;  // for the list alone: may be missing
  cupti::CuptiProfilerHostGetConfigImageSize* config_size = nullptr;
  cupti::CuptiProfilerHostGetConfigImage* config_image = nullptr;
  cupti::CuptiProfilerHostGetNumOfPasses* passes = nullptr;
  cupti::CuptiProfilerHostEvaluateToGpuValues* evaluate = nullptr;
  std::string other_nvperf;  // a copy that is not beside CUPTI and came first; "": none
};

struct PmSamplingLibrary {
  ProfilerHostLibrary host;
  cupti::CuptiPmSamplingGetCounterAvailability* availability = nullptr;
  cupti::CuptiPmSamplingEnable* enable = nullptr;
  cupti::CuptiPmSamplingSetConfig* configure = nullptr;
  cupti::CuptiPmSamplingStart* start = nullptr;
  cupti::CuptiPmSamplingStop* stop = nullptr;
  cupti::CuptiPmSamplingDisable* disable = nullptr;
  cupti::CuptiPmSamplingGetCounterDataSize* data_size = nullptr;
  cupti::CuptiPmSamplingCounterDataImageInitialize* initialize_image = nullptr;
  cupti::CuptiPmSamplingDecodeData* decode = nullptr;
  cupti::CuptiPmSamplingGetCounterDataInfo* data_info = nullptr;
  cupti::CuptiPmSamplingCounterDataGetSampleInfo* sample_info = nullptr;
};

struct RangeProfilerLibrary {
  ProfilerHostLibrary host;
  cupti::CuptiProfilerGetCounterAvailability* availability = nullptr;
  cupti::CuptiRangeProfilerEnable* enable = nullptr;
  cupti::CuptiRangeProfilerSetConfig* configure = nullptr;
  cupti::CuptiRangeProfilerStart* start = nullptr;
  cupti::CuptiRangeProfilerStop* stop = nullptr;
  cupti::CuptiRangeProfilerDisable* disable = nullptr;
  cupti::CuptiRangeProfilerGetCounterDataSize* data_size = nullptr;
  cupti::CuptiRangeProfilerCounterDataImageInitialize* initialize_image = nullptr;
  cupti::CuptiRangeProfilerDecodeData* decode = nullptr;
  cupti::CuptiRangeProfilerGetCounterDataInfo* data_info = nullptr;
};

// Counts by instruction, of kernels that CUPTI patches for them.
struct SassMetricsLibrary {
  ProfilerHostLibrary host;
  cupti::CuptiSassMetricsGetProperties* properties = nullptr;
  cupti::CuptiSassMetricsSetConfig* configure = nullptr;
  cupti::CuptiSassMetricsUnsetConfig* unset = nullptr;
  cupti::CuptiSassMetricsEnable* enable = nullptr;
  cupti::CuptiSassMetricsDisable* disable = nullptr;
  cupti::CuptiSassMetricsGetDataProperties* data_properties = nullptr;
  cupti::CuptiSassMetricsFlushData* flush = nullptr;
};

// A call that failed, of a function that makes several.
struct CuptiFailure {
  const char* call = "";  // "": none
  cupti::Result result = cupti::Result::Success;
  explicit operator bool() const { return *call != 0; }
  // This release of CUPTI is older than the GPU.
  [[nodiscard]] bool is_unknown_chip() const {
    return call == std::string_view("host_initialize") && result == cupti::Result::InvalidParameter;
  }
};

// On failure `reason` says what this CUPTI lacks. Loads the libraries that CUPTI opens by bare name from its own
// directory, where it does not look: else those of another release may come.
[[nodiscard]] bool load_pm_sampling(const CuptiLibrary& cupti, PmSamplingLibrary& sampling, std::string& reason);
[[nodiscard]] bool load_range_profiler(const CuptiLibrary& cupti, RangeProfilerLibrary& profiler, std::string& reason);
[[nodiscard]] bool load_sass_metrics(const CuptiLibrary& cupti, SassMetricsLibrary& metrics, std::string& reason);

// Why counters cannot be had here and what to do, with CUPTI's own words. `call`: the function that refused.
[[nodiscard]] std::string counter_refusal(const CuptiLibrary& cupti, const char* call, cupti::Result result);

}  // namespace bragg

// The first function of a library that does not succeed ends the function that calls it.
#define TRY_CUPTI(library, function, params)                                                               \
  if (const auto result = (library).function(&(params)); result != bragg::cupti::Result::Success) return { \
      #function, result                                                                                    \
    }
