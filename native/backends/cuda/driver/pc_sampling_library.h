// The functions of a loaded CUPTI that sample instructions.
#pragma once

#include <string>

#include "backends/cuda/driver/cupti_library.h"
#include "backends/cuda/driver/cupti_pc_sampling.h"

namespace bragg {

struct PcSamplingLibrary {
  cupti::CuptiPCSamplingEnable* enable = nullptr;
  cupti::CuptiPCSamplingDisable* disable = nullptr;
  cupti::CuptiPCSamplingStart* start = nullptr;
  cupti::CuptiPCSamplingStop* stop = nullptr;
  cupti::CuptiPCSamplingGetData* get_data = nullptr;
  cupti::CuptiPCSamplingSetConfigurationAttribute* configure = nullptr;
  cupti::CuptiPCSamplingGetNumStallReasons* count_reasons = nullptr;
  cupti::CuptiPCSamplingGetStallReasons* name_reasons = nullptr;
  cupti::CuptiGetCubinCrc* cubin_crc = nullptr;
  cupti::CuptiProfilerInitialize* initialize_profiler = nullptr;                 // nullptr before 12.6
  cupti::CuptiPmSamplingGetCounterAvailability* counter_availability = nullptr;  // nullptr before 12.6
};

// On failure `reason` says what this CUPTI lacks.
[[nodiscard]] bool load_pc_sampling(const CuptiLibrary& cupti, PcSamplingLibrary& sampling, std::string& reason);

// Whether another process has the counters of this GPU: one that samples instructions, ncu, DCGM. False where CUPTI
// does not tell. On an H100 this takes 30 ms if it is so, else 0.15 to 0.3 s.
[[nodiscard]] bool has_other_user(const PcSamplingLibrary& sampling, uint32_t device);

// Why CUPTI does not sample here and what to do, with CUPTI's own words.
[[nodiscard]] std::string sampling_refusal(const CuptiLibrary& cupti, cupti::Result result);

}  // namespace bragg
