// The SASS metrics of CUPTI 12.6 and later.
#include "cupti/optional_symbol.h"
#include "cupti/sass_metrics.h"
#include "cupti/tool.h"

namespace bragg::fake {
namespace {

using cupti::Result;

constexpr uint32_t kSassSince = 24;  // 12.6

Result properties(cupti::SassMetricParams* params) {
  return api("cuptiSassMetricsGetProperties", Needs::Driver, [&] { return SassMetrics::properties(*params); });
}

Result set_config(cupti::SassConfigParams* params) {
  return api("cuptiSassMetricsSetConfig", Needs::Driver, [&] { return sass_metrics().configure(*params); });
}

Result unset_config(cupti::SassUnsetParams* params) {
  return api("cuptiSassMetricsUnsetConfig", Needs::Driver, [&] { return sass_metrics().unset(params->device); });
}

Result enable(cupti::SassEnableParams* params) {
  return api("cuptiSassMetricsEnable", Needs::Driver, [&] { return sass_metrics().enable(*params); });
}

Result disable(cupti::SassDisableParams* params) {
  return api("cuptiSassMetricsDisable", Needs::Driver, [&] { return sass_metrics().disable(*params); });
}

Result data_properties(cupti::SassDataParams* params) {
  return api("cuptiSassMetricsGetDataProperties", Needs::Driver,
             [&] { return sass_metrics().data_properties(*params); });
}

Result flush(cupti::SassFlushParams* params) {
  return api("cuptiSassMetricsFlushData", Needs::Driver, [&] { return sass_metrics().flush(*params); });
}

}  // namespace

FAKE_OPTIONAL_CUPTI(cuptiSassMetricsGetProperties, CuptiSassMetricsGetProperties, properties, kSassSince)
FAKE_OPTIONAL_CUPTI(cuptiSassMetricsSetConfig, CuptiSassMetricsSetConfig, set_config, kSassSince)
FAKE_OPTIONAL_CUPTI(cuptiSassMetricsUnsetConfig, CuptiSassMetricsUnsetConfig, unset_config, kSassSince)
FAKE_OPTIONAL_CUPTI(cuptiSassMetricsEnable, CuptiSassMetricsEnable, enable, kSassSince)
FAKE_OPTIONAL_CUPTI(cuptiSassMetricsDisable, CuptiSassMetricsDisable, disable, kSassSince)
FAKE_OPTIONAL_CUPTI(cuptiSassMetricsGetDataProperties, CuptiSassMetricsGetDataProperties, data_properties, kSassSince)
FAKE_OPTIONAL_CUPTI(cuptiSassMetricsFlushData, CuptiSassMetricsFlushData, flush, kSassSince)

}  // namespace bragg::fake
