// The range profiler of CUPTI 12.6 and later.
#include "cupti/optional_symbol.h"
#include "cupti/range_profiler.h"
#include "cupti/tool.h"

namespace bragg::fake {
namespace {

using cupti::Result;

constexpr uint32_t kRangesSince = 24;  // 12.6
constexpr size_t kAvailabilityBytes = 64;

Result availability(cupti::RangeAvailabilityParams* params) {
  return api("cuptiProfilerGetCounterAvailability", Needs::Driver, [&] {
    params->image_size_bytes = kAvailabilityBytes;
    return knob(Knob::CountersBusy) != 0 ? Result::HardwareBusy : Result::Success;
  });
}

Result enable(cupti::RangeEnableParams* params) {
  return api("cuptiRangeProfilerEnable", Needs::Driver, [&] { return range_profiler().enable(*params); });
}

Result set_config(cupti::RangeConfigParams* params) {
  return api("cuptiRangeProfilerSetConfig", Needs::Driver, [&] { return range_profiler().configure(*params); });
}

Result start(cupti::RangeProfilerParams* params) {
  return api("cuptiRangeProfilerStart", Needs::Driver, [&] { return range_profiler().start(params->profiler); });
}

Result stop(cupti::RangeStopParams* params) {
  return api("cuptiRangeProfilerStop", Needs::Driver, [&] { return range_profiler().stop(*params); });
}

Result disable(cupti::RangeProfilerParams* params) {
  return api("cuptiRangeProfilerDisable", Needs::Driver, [&] { return range_profiler().disable(params->profiler); });
}

Result data_size(cupti::RangeDataSizeParams* params) {
  return api("cuptiRangeProfilerGetCounterDataSize", Needs::Driver,
             [&] { return range_profiler().data_size(*params); });
}

Result initialize_image(cupti::RangeImageParams* params) {
  return api("cuptiRangeProfilerCounterDataImageInitialize", Needs::Driver,
             [&] { return range_profiler().initialize_image(*params); });
}

Result decode(cupti::RangeDecodeParams* params) {
  return api("cuptiRangeProfilerDecodeData", Needs::Driver, [&] { return range_profiler().decode(*params); });
}

Result data_info(cupti::RangeDataInfoParams* params) {
  return api("cuptiRangeProfilerGetCounterDataInfo", Needs::Driver, [&] {
    params->ranges = reinterpret_cast<const PmImage*>(params->image)->count;
    return Result::Success;
  });
}

}  // namespace

FAKE_OPTIONAL_CUPTI(cuptiProfilerGetCounterAvailability, CuptiProfilerGetCounterAvailability, availability,
                    kRangesSince)
FAKE_OPTIONAL_CUPTI(cuptiRangeProfilerEnable, CuptiRangeProfilerEnable, enable, kRangesSince)
FAKE_OPTIONAL_CUPTI(cuptiRangeProfilerSetConfig, CuptiRangeProfilerSetConfig, set_config, kRangesSince)
FAKE_OPTIONAL_CUPTI(cuptiRangeProfilerStart, CuptiRangeProfilerStart, start, kRangesSince)
FAKE_OPTIONAL_CUPTI(cuptiRangeProfilerStop, CuptiRangeProfilerStop, stop, kRangesSince)
FAKE_OPTIONAL_CUPTI(cuptiRangeProfilerDisable, CuptiRangeProfilerDisable, disable, kRangesSince)
FAKE_OPTIONAL_CUPTI(cuptiRangeProfilerGetCounterDataSize, CuptiRangeProfilerGetCounterDataSize, data_size, kRangesSince)
FAKE_OPTIONAL_CUPTI(cuptiRangeProfilerCounterDataImageInitialize, CuptiRangeProfilerCounterDataImageInitialize,
                    initialize_image, kRangesSince)
FAKE_OPTIONAL_CUPTI(cuptiRangeProfilerDecodeData, CuptiRangeProfilerDecodeData, decode, kRangesSince)
FAKE_OPTIONAL_CUPTI(cuptiRangeProfilerGetCounterDataInfo, CuptiRangeProfilerGetCounterDataInfo, data_info, kRangesSince)

}  // namespace bragg::fake
