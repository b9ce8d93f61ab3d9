// PM sampling, and the host functions that choose and evaluate its metrics, of a GH100 and CUPTI 12.9 or later.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cupti/optional_symbol.h"
#include "cupti/pm_sampling.h"
#include "cupti/tool.h"

namespace bragg::fake {
namespace {

using cupti::Result;

constexpr uint32_t kSince = 24;           // 12.6
constexpr uint32_t kDramBytesSince = 28;  // 12.9: before, GH100 has shares of the peak alone
constexpr size_t kConfigBytes = 512;
constexpr double kSmCyclesPerNs = 1.8;
constexpr double kL1BytesPerNs = 8000;
constexpr double kL2BytesPerNs = 4000;

struct Metric {
  std::string_view name;
  uint32_t passes;
  double (*value)(const PmQuantities& quantities, double length_ns);
  bool is_of_samples = true, is_of_ranges = true;
};
constexpr Metric kMetrics[] = {
    {"dram__bytes_read.sum", 1, [](const PmQuantities& q, double) { return q[kRead]; }},
    {"dram__bytes_write.sum", 1, [](const PmQuantities& q, double) { return q[kWrite]; }},
    {"sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed", 1,
     [](const PmQuantities& q, double length) { return 100 * q[kTensorNs] / length; }, true, false},
    {"sm__cycles_active.avg", 1, [](const PmQuantities& q, double) { return q[kActiveNs] * kSmCyclesPerNs; }},
    {"sm__cycles_elapsed.avg", 1, [](const PmQuantities&, double length) { return length * kSmCyclesPerNs; }},
    {"gpc__cycles_elapsed.avg.per_second", 1, [](const PmQuantities&, double) { return kSmCyclesPerNs * 1e9; }},
    {"tpc__warps_active_shader_cs_realtime.avg.pct_of_peak_sustained_elapsed", 1,
     [](const PmQuantities& q, double length) { return 50 * q[kActiveNs] / length; }, true, false},
    {"sm__inst_executed_realtime.sum", 1, [](const PmQuantities& q, double) { return q[kInstructions]; }, true, false},
    // Of ranges: in samples the hardware counts those of `_realtime`.
    {"gpu__time_duration.sum", 1, [](const PmQuantities&, double length) { return length; }, false},
    {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", 1,
     [](const PmQuantities& q, double length) { return 100 * q[kTensorNs] / length; }, false},
    {"sm__warps_active.avg.pct_of_peak_sustained_elapsed", 1,
     [](const PmQuantities& q, double length) { return 50 * q[kActiveNs] / length; }, false},
    {"sm__inst_executed.sum", 1, [](const PmQuantities& q, double) { return q[kInstructions]; }, false},
    {"lts__t_sectors.sum", 1, [](const PmQuantities& q, double) { return (q[kRead] + q[kWrite]) / 32; }},
    {"LTS.TriageCompute.lts__throughput.avg.pct_of_peak_sustained_elapsed", 1,
     [](const PmQuantities& q, double length) { return 100 * (q[kRead] + q[kWrite]) / (kL2BytesPerNs * length); }, true,
     false},
    {"SM_A.TriageCompute.l1tex__throughput.avg.pct_of_peak_sustained_elapsed", 1,
     [](const PmQuantities& q, double length) { return 100 * (q[kRead] + q[kWrite]) / (kL1BytesPerNs * length); }, true,
     false},
    {"TriageCompute.sm__throughput.avg.pct_of_peak_sustained_elapsed", 1,
     [](const PmQuantities& q, double length) { return 100 * q[kTensorNs] / length; }, true, false},
    {"pcie__read_bytes.sum", 1, [](const PmQuantities&, double) { return 0.0; }},
    {"LTS.TriageCompute.lts__average_t_sector_hit_rate_realtime.ratio", 1,
     [](const PmQuantities&, double) { return 0.5; }, true, false},
    {"lts__t_sector_hit_rate.pct", 2, [](const PmQuantities&, double) { return 50.0; }},
    {"sm__inst_executed_pipe_tensor.sum", 3, [](const PmQuantities& q, double) { return q[kTensorNs] / 2; }, false},
    // The range profiler takes these names and does not patch the kernels that would count: an H100 answers 0.
    {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", 2, [](const PmQuantities&, double) { return 0.0; }, false},
};

bool is_of(const Metric& metric, cupti::ProfilerType type) {
  return type == cupti::ProfilerType::Range ? metric.is_of_ranges : metric.is_of_samples;
}

const Metric* find(std::string_view name) {
  if (name.starts_with("dram__bytes") && emulated_release().api_version < kDramBytesSince) return nullptr;
  const auto found = std::ranges::find(kMetrics, name, &Metric::name);
  return found != std::end(kMetrics) ? found : nullptr;
}

struct Host {
  cupti::ProfilerType type;
  std::vector<std::string> names;
  std::vector<const char*> given;  // the caller's names
};

// CUPTI may keep the pointers: names are the caller's to keep until the host has ended.
void demand_names(const Host& host, const char* call) {
  if (std::ranges::equal(host.names, host.given)) return;
  std::fprintf(stderr, "fake CUPTI: %s after names of metrics were freed\n", call);
  std::abort();
}

// On an H200 the hit rate is not a number beside counters of multiprocessors, and they are wrong beside those of L1,
// though they fit one pass.
bool is_disturbed(const std::string& name, const std::vector<std::string>& names) {
  const auto is_of_sm = [](const std::string& each) { return each.starts_with("sm__") || each.starts_with("tpc__"); };
  const auto is_of_l1 = [](const std::string& each) { return each.starts_with("SM_A."); };
  return (name.find("hit_rate_realtime") != name.npos && std::ranges::any_of(names, is_of_sm)) ||
         (is_of_sm(name) && std::ranges::any_of(names, is_of_l1));
}

Result chip_name(cupti::ChipNameParams* params) {
  return api("cuptiDeviceGetChipName", Needs::Driver, [&] {
    params->chip = "GH100";
    return Result::Success;
  });
}

Result host_initialize(cupti::HostInitializeParams* params) {
  return api("cuptiProfilerHostInitialize", Needs::Driver, [&] {
    if (params->struct_size_bytes > sizeof *params || std::string_view(params->chip) != "GH100")
      return Result::InvalidParameter;
    params->host = new Host{params->type, {}, {}};
    return Result::Success;
  });
}

Result host_deinitialize(cupti::HostParams* params) {
  return api("cuptiProfilerHostDeinitialize", Needs::Driver, [&] {
    demand_names(*static_cast<const Host*>(params->host), "cuptiProfilerHostDeinitialize");
    delete static_cast<Host*>(params->host);
    return Result::Success;
  });
}

// An unknown name is an invalid parameter, although the header says otherwise.
Result add_metrics(cupti::HostAddMetricsParams* params) {
  return api("cuptiProfilerHostConfigAddMetrics", Needs::Driver, [&] {
    if (params->count == 0) return Result::InvalidParameter;
    for (size_t i = 0; i < params->count; ++i) {
      auto& host = *static_cast<Host*>(params->host);
      const Metric* metric = find(params->names[i]);
      if (metric == nullptr || !is_of(*metric, host.type)) return Result::InvalidParameter;
      host.names.emplace_back(params->names[i]);
      host.given.push_back(params->names[i]);
    }
    return Result::Success;
  });
}

// By type: those that end as its usual value, without that end.
Result base_metrics(cupti::HostBaseMetricsParams* params) {
  return api("cuptiProfilerHostGetBaseMetrics", Needs::Driver, [&] {
    constexpr std::string_view kEnds[] = {".sum", ".ratio", ".avg.pct_of_peak_sustained_elapsed"};
    static std::array<std::vector<std::string>, std::size(kEnds)>& bases =
        *new std::array<std::vector<std::string>, std::size(kEnds)>;
    static std::vector<const char*>& names = *new std::vector<const char*>;
    if (params->host == nullptr || params->type >= std::size(kEnds)) return Result::InvalidParameter;
    std::vector<std::string>& of_type = bases[params->type];
    of_type.clear();
    names.clear();
    for (const Metric& metric : kMetrics)
      if (metric.name.ends_with(kEnds[params->type]) && find(metric.name) != nullptr &&
          is_of(metric, static_cast<const Host*>(params->host)->type))
        of_type.emplace_back(metric.name.substr(0, metric.name.size() - kEnds[params->type].size()));
    for (const std::string& name : of_type) names.push_back(name.c_str());
    params->names = names.data();
    params->count = names.size();
    return Result::Success;
  });
}

Result config_size(cupti::HostImageSizeParams* params) {
  return api("cuptiProfilerHostGetConfigImageSize", Needs::Driver, [&] {
    params->size_bytes = kConfigBytes;
    return Result::Success;
  });
}

// Its first byte: the passes.
Result config_image(cupti::HostImageParams* params) {
  return api("cuptiProfilerHostGetConfigImage", Needs::Driver, [&] {
    if (params->size_bytes < kConfigBytes) return Result::ParameterSizeNotSufficient;
    const auto& host = *static_cast<const Host*>(params->host);
    const auto fits = static_cast<size_t>(knob(Knob::RangePassMetrics));
    const bool is_narrow = fits > 0 && host.type == cupti::ProfilerType::Range;
    auto passes = is_narrow ? static_cast<uint32_t>((host.names.size() + fits - 1) / fits) : 1;
    for (const std::string& name : host.names) passes = std::max(passes, find(name)->passes);
    std::memset(params->image, 0x5A, kConfigBytes);
    params->image[0] = static_cast<uint8_t>(passes);
    return Result::Success;
  });
}

Result num_of_passes(cupti::HostPassesParams* params) {
  return api("cuptiProfilerHostGetNumOfPasses", Needs::Driver, [&] {
    params->passes = params->image[0];
    return Result::Success;
  });
}

Result evaluate(cupti::HostEvaluateParams* params) {
  return api("cuptiProfilerHostEvaluateToGpuValues", Needs::Driver, [&] {
    auto& image = *reinterpret_cast<PmImage*>(const_cast<uint8_t*>(params->data));
    if (params->host == nullptr || image.mark != PmImage::kMark || params->sample >= image.count)
      return Result::InvalidParameter;
    const PmImage::Sample& sample = image.samples()[params->sample];
    const auto length_ns = static_cast<double>(sample.end_ns - sample.start_ns);
    for (size_t i = 0; i < params->count; ++i) {
      const Metric& metric = *find(params->names[i]);
      const bool is_sample = image.passes == 0;
      const bool is_known = is_sample ? !is_disturbed(params->names[i], static_cast<const Host*>(params->host)->names)
                                      : image.passes >= metric.passes;
      params->values[i] =
          is_known ? metric.value(sample.quantities, length_ns) : std::numeric_limits<double>::quiet_NaN();
    }
    return Result::Success;
  });
}

// Succeeds although another process has the counters: that only the availability tells.
Result enable(cupti::PmEnableParams* params) {
  return api("cuptiPmSamplingEnable", Needs::Driver, [&] { return pm_sampling().enable(*params); });
}

Result set_config(cupti::PmConfigParams* params) {
  return api("cuptiPmSamplingSetConfig", Needs::Driver, [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(knob(Knob::PmConfigMs)));
    return params->config[0] == 1 ? pm_sampling().configure(*params) : Result::NotSupported;
  });
}

Result start(cupti::PmSamplerParams* params) {
  return api("cuptiPmSamplingStart", Needs::Driver, [&] {
    return knob(Knob::CountersBusy) != 0 ? Result::HardwareBusy : pm_sampling().start(params->sampler);
  });
}

Result stop(cupti::PmSamplerParams* params) {
  return api("cuptiPmSamplingStop", Needs::Driver, [&] { return pm_sampling().stop(params->sampler); });
}

Result disable(cupti::PmSamplerParams* params) {
  return api("cuptiPmSamplingDisable", Needs::Driver, [&] { return pm_sampling().disable(params->sampler); });
}

Result data_size(cupti::PmDataSizeParams* params) {
  return api("cuptiPmSamplingGetCounterDataSize", Needs::Driver, [&] { return pm_sampling().data_size(*params); });
}

Result initialize_image(cupti::PmImageParams* params) {
  return api("cuptiPmSamplingCounterDataImageInitialize", Needs::Driver,
             [&] { return pm_sampling().initialize_image(*params); });
}

Result decode(cupti::PmDecodeParams* params) {
  return api("cuptiPmSamplingDecodeData", Needs::Driver, [&] { return pm_sampling().decode(*params); });
}

Result data_info(cupti::PmDataInfoParams* params) {
  return api("cuptiPmSamplingGetCounterDataInfo", Needs::Driver, [&] {
    const auto& image = *reinterpret_cast<const PmImage*>(params->image);
    params->total = image.capacity;
    params->populated = params->completed = image.count;
    return Result::Success;
  });
}

Result sample_info(cupti::PmSampleInfoParams* params) {
  return api("cuptiPmSamplingCounterDataGetSampleInfo", Needs::Driver, [&] {
    auto& image = *reinterpret_cast<PmImage*>(params->image);
    if (params->sample >= image.count) return Result::InvalidParameter;
    params->start_ns = image.samples()[params->sample].start_ns;
    params->end_ns = image.samples()[params->sample].end_ns;
    return Result::Success;
  });
}

}  // namespace

FAKE_OPTIONAL_CUPTI(cuptiDeviceGetChipName, CuptiDeviceGetChipName, chip_name, 0)
FAKE_OPTIONAL_CUPTI(cuptiProfilerHostInitialize, CuptiProfilerHostInitialize, host_initialize, kSince)
FAKE_OPTIONAL_CUPTI(cuptiProfilerHostDeinitialize, CuptiProfilerHostDeinitialize, host_deinitialize, kSince)
FAKE_OPTIONAL_CUPTI(cuptiProfilerHostConfigAddMetrics, CuptiProfilerHostConfigAddMetrics, add_metrics, kSince)
FAKE_OPTIONAL_CUPTI(cuptiProfilerHostGetBaseMetrics, CuptiProfilerHostGetBaseMetrics, base_metrics, kSince)
FAKE_OPTIONAL_CUPTI(cuptiProfilerHostGetConfigImageSize, CuptiProfilerHostGetConfigImageSize, config_size, kSince)
FAKE_OPTIONAL_CUPTI(cuptiProfilerHostGetConfigImage, CuptiProfilerHostGetConfigImage, config_image, kSince)
FAKE_OPTIONAL_CUPTI(cuptiProfilerHostGetNumOfPasses, CuptiProfilerHostGetNumOfPasses, num_of_passes, kSince)
FAKE_OPTIONAL_CUPTI(cuptiProfilerHostEvaluateToGpuValues, CuptiProfilerHostEvaluateToGpuValues, evaluate, kSince)
FAKE_OPTIONAL_CUPTI(cuptiPmSamplingEnable, CuptiPmSamplingEnable, enable, kSince)
FAKE_OPTIONAL_CUPTI(cuptiPmSamplingSetConfig, CuptiPmSamplingSetConfig, set_config, kSince)
FAKE_OPTIONAL_CUPTI(cuptiPmSamplingStart, CuptiPmSamplingStart, start, kSince)
FAKE_OPTIONAL_CUPTI(cuptiPmSamplingStop, CuptiPmSamplingStop, stop, kSince)
FAKE_OPTIONAL_CUPTI(cuptiPmSamplingDisable, CuptiPmSamplingDisable, disable, kSince)
FAKE_OPTIONAL_CUPTI(cuptiPmSamplingGetCounterDataSize, CuptiPmSamplingGetCounterDataSize, data_size, kSince)
FAKE_OPTIONAL_CUPTI(cuptiPmSamplingCounterDataImageInitialize, CuptiPmSamplingCounterDataImageInitialize,
                    initialize_image, kSince)
FAKE_OPTIONAL_CUPTI(cuptiPmSamplingDecodeData, CuptiPmSamplingDecodeData, decode, kSince)
FAKE_OPTIONAL_CUPTI(cuptiPmSamplingGetCounterDataInfo, CuptiPmSamplingGetCounterDataInfo, data_info, kSince)
FAKE_OPTIONAL_CUPTI(cuptiPmSamplingCounterDataGetSampleInfo, CuptiPmSamplingCounterDataGetSampleInfo, sample_info,
                    kSince)

}  // namespace bragg::fake
