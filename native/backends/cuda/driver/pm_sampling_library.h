// The functions of a loaded CUPTI that sample hardware counters.
#pragma once

#include <string>

#include "backends/cuda/driver/cupti_library.h"
#include "backends/cuda/driver/cupti_pm_sampling.h"

namespace bragg {

struct PmSamplingLibrary {
  cupti::CuptiProfilerInitialize* initialize_profiler = nullptr;
  cupti::CuptiDeviceGetChipName* chip_name = nullptr;
  cupti::CuptiPmSamplingGetCounterAvailability* availability = nullptr;
  cupti::CuptiProfilerHostInitialize* host_initialize = nullptr;
  cupti::CuptiProfilerHostDeinitialize* host_deinitialize = nullptr;
  cupti::CuptiProfilerHostConfigAddMetrics* add_metrics = nullptr;
  cupti::CuptiProfilerHostGetBaseMetrics* base_metrics = nullptr;  // for the list alone: may be missing
  cupti::CuptiProfilerHostGetConfigImageSize* config_size = nullptr;
  cupti::CuptiProfilerHostGetConfigImage* config_image = nullptr;
  cupti::CuptiProfilerHostGetNumOfPasses* passes = nullptr;
  cupti::CuptiProfilerHostEvaluateToGpuValues* evaluate = nullptr;
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

// On failure `reason` says what this CUPTI lacks. Loads the libraries that CUPTI opens by bare name from its own
// directory, where it does not look: else those of another release may come.
[[nodiscard]] bool load_pm_sampling(const CuptiLibrary& cupti, PmSamplingLibrary& sampling, std::string& reason);

// Why counters are not sampled here and what to do, with CUPTI's own words. `call`: the function that refused.
[[nodiscard]] std::string counter_refusal(const CuptiLibrary& cupti, const char* call, cupti::Result result);

}  // namespace bragg
