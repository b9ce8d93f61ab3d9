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
};

// On failure `reason` says what this CUPTI lacks.
[[nodiscard]] bool load_pc_sampling(const CuptiLibrary& cupti, PcSamplingLibrary& sampling, std::string& reason);

// Why CUPTI does not sample here and what to do, with CUPTI's own words.
[[nodiscard]] std::string sampling_refusal(const CuptiLibrary& cupti, cupti::Result result);

}  // namespace bragg
