#include "backends/cuda/driver/profiler_library.h"

#include <dlfcn.h>

#include "backends/cuda/driver/pc_sampling_library.h"
#include "context/loaded_library.h"

namespace bragg {
namespace {

// libcupti has no RUNPATH: a toolkit in the loader's cache would win over the copy beside it.
// `other`: a copy elsewhere that came first, which CUPTI then uses.
void load_neighbours(const void* function_of_cupti, std::string& other) {
  Dl_info info{};
  if (dladdr(function_of_cupti, &info) == 0 || info.dli_fname == nullptr) return;
  const std::string cupti_path = info.dli_fname;
  const size_t slash = cupti_path.rfind('/');
  if (slash == std::string::npos) return;
  const std::string directory = cupti_path.substr(0, slash + 1);
  for (const std::string& mapped : mapped_libraries("libnvperf_host.so"))
    if (!mapped.starts_with(directory)) other = mapped;
  for (const char* name : {"libnvperf_host.so", "libnvperf_target.so"})
    (void)dlopen((directory + name).c_str(), RTLD_NOW | RTLD_GLOBAL);
}

struct Symbols {
  const LoadedLibrary& library;
  bool complete = true;

  template <class Function>
  void resolve(const char* symbol, Function*& function) {
    function = library.function<Function>(symbol);
    complete = complete && function != nullptr;
  }
};

void load_host(Symbols& symbols, ProfilerHostLibrary& host) {
  symbols.resolve("cuptiProfilerInitialize", host.initialize_profiler);
  symbols.resolve("cuptiDeviceGetChipName", host.chip_name);
  symbols.resolve("cuptiProfilerHostInitialize", host.host_initialize);
  symbols.resolve("cuptiProfilerHostDeinitialize", host.host_deinitialize);
  symbols.resolve("cuptiProfilerHostConfigAddMetrics", host.add_metrics);
  symbols.resolve("cuptiProfilerHostGetConfigImageSize", host.config_size);
  symbols.resolve("cuptiProfilerHostGetConfigImage", host.config_image);
  symbols.resolve("cuptiProfilerHostGetNumOfPasses", host.passes);
  symbols.resolve("cuptiProfilerHostEvaluateToGpuValues", host.evaluate);
  host.base_metrics =
      symbols.library.function<cupti::CuptiProfilerHostGetBaseMetrics>("cuptiProfilerHostGetBaseMetrics");
  if (symbols.complete) load_neighbours(reinterpret_cast<const void*>(host.host_initialize), host.other_nvperf);
}

}  // namespace

bool load_pm_sampling(const CuptiLibrary& cupti, PmSamplingLibrary& sampling, std::string& reason) {
  Symbols symbols{cupti.library};
  load_host(symbols, sampling.host);
  symbols.resolve("cuptiPmSamplingGetCounterAvailability", sampling.availability);
  symbols.resolve("cuptiPmSamplingEnable", sampling.enable);
  symbols.resolve("cuptiPmSamplingSetConfig", sampling.configure);
  symbols.resolve("cuptiPmSamplingStart", sampling.start);
  symbols.resolve("cuptiPmSamplingStop", sampling.stop);
  symbols.resolve("cuptiPmSamplingDisable", sampling.disable);
  symbols.resolve("cuptiPmSamplingGetCounterDataSize", sampling.data_size);
  symbols.resolve("cuptiPmSamplingCounterDataImageInitialize", sampling.initialize_image);
  symbols.resolve("cuptiPmSamplingDecodeData", sampling.decode);
  symbols.resolve("cuptiPmSamplingGetCounterDataInfo", sampling.data_info);
  symbols.resolve("cuptiPmSamplingCounterDataGetSampleInfo", sampling.sample_info);
  if (!symbols.complete) reason = cupti.library.path() + " cannot sample counters: CUPTI 12.6 or later can";
  return symbols.complete;
}

bool load_range_profiler(const CuptiLibrary& cupti, RangeProfilerLibrary& profiler, std::string& reason) {
  Symbols symbols{cupti.library};
  load_host(symbols, profiler.host);
  symbols.resolve("cuptiProfilerGetCounterAvailability", profiler.availability);
  symbols.resolve("cuptiRangeProfilerEnable", profiler.enable);
  symbols.resolve("cuptiRangeProfilerSetConfig", profiler.configure);
  symbols.resolve("cuptiRangeProfilerStart", profiler.start);
  symbols.resolve("cuptiRangeProfilerStop", profiler.stop);
  symbols.resolve("cuptiRangeProfilerDisable", profiler.disable);
  symbols.resolve("cuptiRangeProfilerGetCounterDataSize", profiler.data_size);
  symbols.resolve("cuptiRangeProfilerCounterDataImageInitialize", profiler.initialize_image);
  symbols.resolve("cuptiRangeProfilerDecodeData", profiler.decode);
  symbols.resolve("cuptiRangeProfilerGetCounterDataInfo", profiler.data_info);
  if (!symbols.complete) reason = cupti.library.path() + " cannot measure single launches: CUPTI 12.6 or later can";
  return symbols.complete;
}

bool load_sass_metrics(const CuptiLibrary& cupti, SassMetricsLibrary& metrics, std::string& reason) {
  Symbols symbols{cupti.library};
  load_host(symbols, metrics.host);
  symbols.resolve("cuptiSassMetricsGetProperties", metrics.properties);
  symbols.resolve("cuptiSassMetricsSetConfig", metrics.configure);
  symbols.resolve("cuptiSassMetricsUnsetConfig", metrics.unset);
  symbols.resolve("cuptiSassMetricsEnable", metrics.enable);
  symbols.resolve("cuptiSassMetricsDisable", metrics.disable);
  symbols.resolve("cuptiSassMetricsGetDataProperties", metrics.data_properties);
  symbols.resolve("cuptiSassMetricsFlushData", metrics.flush);
  if (!symbols.complete) reason = cupti.library.path() + " cannot count by instruction: CUPTI 12.6 or later can";
  return symbols.complete;
}

std::string counter_refusal(const CuptiLibrary& cupti, const char* call, cupti::Result result) {
  if (CuptiFailure{call, result}.is_unknown_chip())
    return cupti.library.path() + " does not know the counters of this GPU: a newer CUPTI may, set BRAGG_CUPTI_DIR";
  std::string text;
  if (result == cupti::Result::HardwareBusy || result == cupti::Result::InvalidOperation) {
    text =
        "the counters of this GPU are in use, by another process or another tool in this one (ncu, nsys "
        "--gpu-metrics-devices, DCGM, another bragg): end it, or pause DCGM with dcgmi profile --pause; CUPTI says: ";
    text += cupti.text(result);
  } else if (result == cupti::Result::NotInitialized) {
    text = "libnvperf_host.so and libnvperf_target.so were not found beside CUPTI; CUPTI says: " + cupti.text(result);
  } else {
    text = sampling_refusal(cupti, result);
  }
  return text + " (" + call + ")";
}

}  // namespace bragg
