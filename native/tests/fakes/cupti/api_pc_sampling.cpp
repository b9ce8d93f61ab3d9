// Instruction sampling.
#include <cstdio>

#include "cupti/optional_symbol.h"
#include "cupti/pc_sampling.h"
#include "cupti/tool.h"

namespace bragg::fake {
namespace {

constexpr const char* kReasonNames[] = {"selected", "long_scoreboard", "barrier", "math_pipe_throttle"};
static_assert(std::size(kReasonNames) * 2 == PcSampling::kReasons);

cupti::Result get_data(cupti::SamplingDataParams* params) {
  return api("cuptiPCSamplingGetData", Needs::Driver,
             [&] { return pc_sampling().get(params->context, *params->data); });
}

constexpr uint32_t kPmSamplingSince = 24;  // 12.6
constexpr size_t kAvailabilityBytes = 64;

cupti::Result initialize_profiler(cupti::ProfilerInitializeParams*) {
  return api("cuptiProfilerInitialize", Needs::Driver, [] { return cupti::Result::Success; });
}

cupti::Result counter_availability(cupti::CounterAvailabilityParams* params) {
  return api("cuptiPmSamplingGetCounterAvailability", Needs::Driver, [&] {
    if (params->image == nullptr) {
      params->image_size_bytes = kAvailabilityBytes;
      return cupti::Result::Success;
    }
    return knob(Knob::CountersBusy) != 0 ? cupti::Result::HardwareBusy : cupti::Result::Success;
  });
}

}  // namespace

FAKE_CUPTI(cuptiPCSamplingEnable)(cupti::SamplingParams* params) {
  return api("cuptiPCSamplingEnable", Needs::Driver, [&] { return pc_sampling().enable(params->context); });
}
FAKE_CUPTI_IS(cuptiPCSamplingEnable, CuptiPCSamplingEnable);

FAKE_CUPTI(cuptiPCSamplingDisable)(cupti::SamplingParams* params) {
  return api("cuptiPCSamplingDisable", Needs::Driver, [&] { return pc_sampling().disable(params->context); });
}
FAKE_CUPTI_IS(cuptiPCSamplingDisable, CuptiPCSamplingDisable);

FAKE_CUPTI(cuptiPCSamplingStart)(cupti::SamplingParams* params) {
  return api("cuptiPCSamplingStart", Needs::Driver, [&] { return pc_sampling().set_running(params->context, true); });
}
FAKE_CUPTI_IS(cuptiPCSamplingStart, CuptiPCSamplingStart);

FAKE_CUPTI(cuptiPCSamplingStop)(cupti::SamplingParams* params) {
  return api("cuptiPCSamplingStop", Needs::Driver, [&] { return pc_sampling().set_running(params->context, false); });
}
FAKE_CUPTI_IS(cuptiPCSamplingStop, CuptiPCSamplingStop);

FAKE_OPTIONAL_CUPTI(cuptiPCSamplingGetData, CuptiPCSamplingGetData, get_data, 0)

FAKE_CUPTI(cuptiPCSamplingSetConfigurationAttribute)(cupti::SamplingConfiguration* params) {
  return api("cuptiPCSamplingSetConfigurationAttribute", Needs::Driver,
             [&] { return pc_sampling().configure(*params); });
}
FAKE_CUPTI_IS(cuptiPCSamplingSetConfigurationAttribute, CuptiPCSamplingSetConfigurationAttribute);

FAKE_CUPTI(cuptiPCSamplingGetNumStallReasons)(cupti::StallReasonCount* params) {
  return api("cuptiPCSamplingGetNumStallReasons", Needs::Driver, [&] {
    *params->count = PcSampling::kReasons;
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiPCSamplingGetNumStallReasons, CuptiPCSamplingGetNumStallReasons);

FAKE_CUPTI(cuptiPCSamplingGetStallReasons)(cupti::StallReasonNames* params) {
  return api("cuptiPCSamplingGetStallReasons", Needs::Driver, [&] {
    for (uint32_t i = 0; i < params->count; ++i) {
      const bool is_subset = i >= std::size(kReasonNames);
      params->numbers[i] = i;
      std::snprintf(params->names[i], cupti::kStallReasonNameBytes, "smsp__pcsamp_warps_issue_stalled_%s%s",
                    kReasonNames[i % std::size(kReasonNames)], is_subset ? "_not_issued" : "");
    }
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiPCSamplingGetStallReasons, CuptiPCSamplingGetStallReasons);

FAKE_OPTIONAL_CUPTI(cuptiProfilerInitialize, CuptiProfilerInitialize, initialize_profiler, kPmSamplingSince)
FAKE_OPTIONAL_CUPTI(cuptiPmSamplingGetCounterAvailability, CuptiPmSamplingGetCounterAvailability, counter_availability,
                    kPmSamplingSince)

FAKE_CUPTI(cuptiGetCubinCrc)(cupti::CubinCrcParams* params) {
  return api("cuptiGetCubinCrc", Needs::Nothing, [&] {
    if (params->cubin == nullptr || params->cubin_size_bytes == 0) return cupti::Result::InvalidParameter;
    params->crc = cubin_crc(params->cubin, params->cubin_size_bytes);
    return cupti::Result::Success;
  });
}
FAKE_CUPTI_IS(cuptiGetCubinCrc, CuptiGetCubinCrc);

}  // namespace bragg::fake
