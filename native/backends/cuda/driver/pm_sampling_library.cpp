#include "backends/cuda/driver/pm_sampling_library.h"

#include <dlfcn.h>

#include "backends/cuda/driver/pc_sampling_library.h"

namespace bragg {
namespace {

// libcupti has no RUNPATH: a toolkit in the loader's cache would win over the copy beside it.
void load_neighbours(const void* function_of_cupti) {
  Dl_info info{};
  if (dladdr(function_of_cupti, &info) == 0 || info.dli_fname == nullptr) return;
  const std::string cupti_path = info.dli_fname;
  const size_t slash = cupti_path.rfind('/');
  if (slash == std::string::npos) return;
  for (const char* name : {"libnvperf_host.so", "libnvperf_target.so"})
    (void)dlopen((cupti_path.substr(0, slash + 1) + name).c_str(), RTLD_NOW | RTLD_GLOBAL);
}

}  // namespace

bool load_pm_sampling(const CuptiLibrary& cupti, PmSamplingLibrary& sampling, std::string& reason) {
  const LoadedLibrary& library = cupti.library;
  bool complete = true;
  const auto resolve = [&]<class Function>(const char* symbol, Function*& function) {
    function = library.function<Function>(symbol);
    complete = complete && function != nullptr;
  };
  resolve("cuptiProfilerInitialize", sampling.initialize_profiler);
  resolve("cuptiDeviceGetChipName", sampling.chip_name);
  resolve("cuptiPmSamplingGetCounterAvailability", sampling.availability);
  resolve("cuptiProfilerHostInitialize", sampling.host_initialize);
  resolve("cuptiProfilerHostDeinitialize", sampling.host_deinitialize);
  resolve("cuptiProfilerHostConfigAddMetrics", sampling.add_metrics);
  resolve("cuptiProfilerHostGetConfigImageSize", sampling.config_size);
  resolve("cuptiProfilerHostGetConfigImage", sampling.config_image);
  resolve("cuptiProfilerHostGetNumOfPasses", sampling.passes);
  resolve("cuptiProfilerHostEvaluateToGpuValues", sampling.evaluate);
  resolve("cuptiPmSamplingEnable", sampling.enable);
  resolve("cuptiPmSamplingSetConfig", sampling.configure);
  resolve("cuptiPmSamplingStart", sampling.start);
  resolve("cuptiPmSamplingStop", sampling.stop);
  resolve("cuptiPmSamplingDisable", sampling.disable);
  resolve("cuptiPmSamplingGetCounterDataSize", sampling.data_size);
  resolve("cuptiPmSamplingCounterDataImageInitialize", sampling.initialize_image);
  resolve("cuptiPmSamplingDecodeData", sampling.decode);
  resolve("cuptiPmSamplingGetCounterDataInfo", sampling.data_info);
  resolve("cuptiPmSamplingCounterDataGetSampleInfo", sampling.sample_info);
  sampling.base_metrics = library.function<cupti::CuptiProfilerHostGetBaseMetrics>("cuptiProfilerHostGetBaseMetrics");
  if (complete) {
    load_neighbours(reinterpret_cast<const void*>(sampling.enable));
  } else {
    reason = library.path() + " cannot sample counters: CUPTI 12.6 or later can";
  }
  return complete;
}

std::string counter_refusal(const CuptiLibrary& cupti, const char* call, cupti::Result result) {
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
