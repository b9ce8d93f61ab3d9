#include "backends/cuda/driver/pc_sampling_library.h"

#include <vector>

namespace bragg {
namespace {

// 12.4 gave PcSamples its last field: the elements of older arrays lie closer together.
constexpr uint32_t kFirstVersion = 22;

template <class Function>
bool resolve(const LoadedLibrary& library, const char* symbol, Function*& function) {
  function = library.function<Function>(symbol);
  return function != nullptr;
}

// What of the machine is in the way, and what to do; "": nothing that is known.
std::string obstacle(cupti::Result result) {
  switch (result) {
    case cupti::Result::InsufficientPrivileges:
      return "the driver lets only administrators do it (RmProfilingAdminOnly in /proc/driver/nvidia/params is 1): run "
             "as root or with CAP_SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0";
    case cupti::Result::NotSupported:
    case cupti::Result::InvalidDevice:
      return "this GPU or driver cannot: compute capability 7.5 or later is needed";
    case cupti::Result::VirtualizedDeviceNotSupported:
    case cupti::Result::VirtualizedDeviceInsufficientPrivileges:
      return "this virtual GPU cannot: enable profiling in its host's vGPU settings";
    case cupti::Result::ConfidentialComputingNotSupported:
      return "the GPU runs in confidential computing mode, which forbids it: boot it in its development mode";
    case cupti::Result::CmpDeviceNotSupported:
      return "mining GPUs cannot";
    case cupti::Result::MigDeviceNotSupported:
      return "a MIG instance cannot: use a GPU that is not partitioned";
    case cupti::Result::SliDeviceNotSupported:
      return "GPUs in SLI cannot: switch SLI off";
    case cupti::Result::WslDeviceNotSupported:
      return "GPUs in WSL cannot: use Linux itself";
    default:
      return "";
  }
}

}  // namespace

bool load_pc_sampling(const CuptiLibrary& cupti, PcSamplingLibrary& sampling, std::string& reason) {
  const LoadedLibrary& library = cupti.library;
  const bool complete = cupti.version >= kFirstVersion && resolve(library, "cuptiPCSamplingEnable", sampling.enable) &&
                        resolve(library, "cuptiPCSamplingDisable", sampling.disable) &&
                        resolve(library, "cuptiPCSamplingStart", sampling.start) &&
                        resolve(library, "cuptiPCSamplingStop", sampling.stop) &&
                        resolve(library, "cuptiPCSamplingGetData", sampling.get_data) &&
                        resolve(library, "cuptiPCSamplingSetConfigurationAttribute", sampling.configure) &&
                        resolve(library, "cuptiPCSamplingGetNumStallReasons", sampling.count_reasons) &&
                        resolve(library, "cuptiPCSamplingGetStallReasons", sampling.name_reasons) &&
                        resolve(library, "cuptiGetCubinCrc", sampling.cubin_crc);
  (void)resolve(library, "cuptiProfilerInitialize", sampling.initialize_profiler);
  (void)resolve(library, "cuptiPmSamplingGetCounterAvailability", sampling.counter_availability);
  if (!complete) reason = library.path() + " cannot sample instructions: CUPTI 12.4 or later can";
  return complete;
}

bool has_other_user(const PcSamplingLibrary& sampling, uint32_t device) {
  if (sampling.initialize_profiler == nullptr || sampling.counter_availability == nullptr) return false;
  cupti::ProfilerInitializeParams initialize{sizeof initialize, nullptr};
  if (sampling.initialize_profiler(&initialize) != cupti::Result::Success) return false;
  cupti::CounterAvailabilityParams asked{sizeof asked, nullptr, device, 0, nullptr};
  auto result = sampling.counter_availability(&asked);
  std::vector<uint8_t> image(asked.image_size_bytes);
  asked.image = image.data();
  if (result == cupti::Result::Success) result = sampling.counter_availability(&asked);
  return result == cupti::Result::HardwareBusy;
}

std::string sampling_refusal(const CuptiLibrary& cupti, cupti::Result result) {
  std::string text = obstacle(result);
  if (!text.empty()) text += "; ";
  return text.append("CUPTI says: ").append(cupti.text(result));
}

}  // namespace bragg
