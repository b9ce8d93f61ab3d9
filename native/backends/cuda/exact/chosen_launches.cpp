#include "backends/cuda/exact/chosen_launches.h"

#include <algorithm>

#include "backends/cuda/driver/cuda_abi.h"
#include "data/json.h"
#include "symbols/demangled.h"

namespace bragg {
namespace {

// A program whose grids differ in each launch must not fill the memory.
constexpr size_t kMostKernels = 1u << 16;
// Kernels of NCCL, NVSHMEM and of PyTorch's symmetric memory, which wait for other GPUs.
constexpr std::string_view kCommunicating[] = {"nccl",       "nvshmem",   "symm_mem",  "multimem",       "all_reduce",
                                               "all_gather", "allreduce", "allgather", "reduce_scatter", "all_to_all"};

// As CUDA lays out the parameters of a call for callbacks.
struct LaunchParams {
  const void* function;
  std::array<uint32_t, 7> shape;
};
struct LaunchAttribute {
  uint32_t id;
  uint32_t padding;
  uint32_t value[16];
};
static_assert(sizeof(LaunchAttribute) == 72);
struct LaunchConfig {
  std::array<uint32_t, 7> shape;
  void* stream;
  const LaunchAttribute* attributes;
  uint32_t attribute_count;
};
static_assert(offsetof(LaunchConfig, stream) == 32 && offsetof(LaunchConfig, attribute_count) == 48);
struct LaunchExParams {
  const LaunchConfig* config;
  const void* function;
};
constexpr uint32_t kCooperative = 2;  // CU_LAUNCH_ATTRIBUTE_COOPERATIVE

}  // namespace

KernelLaunch kernel_launch(uint32_t cbid, const cupti::CallbackData& data) noexcept {
  const std::string_view call = cupti::driver_call_name(cbid);
  const bool is_cooperative = call.starts_with("cuLaunchCooperativeKernel");
  KernelLaunch launch;
  launch.context = data.context;
  launch.symbol = data.symbol_name != nullptr ? data.symbol_name : "";
  if (call.starts_with("cuLaunchKernelEx")) {
    const auto& params = *static_cast<const LaunchExParams*>(data.function_params);
    launch.function = params.function;
    launch.shape = params.config->shape;
    for (uint32_t i = 0; i < params.config->attribute_count; ++i)
      launch.is_cooperative |=
          params.config->attributes[i].id == kCooperative && params.config->attributes[i].value[0] != 0;
  } else if (call.starts_with("cuLaunchKernel") || (is_cooperative && !call.ends_with("MultiDevice"))) {
    const auto& params = *static_cast<const LaunchParams*>(data.function_params);
    launch.function = params.function;
    launch.shape = params.shape;
    launch.is_cooperative = is_cooperative;
  }
  return launch;
}

const char* name_of(NotMeasured why) {
  constexpr const char* kNames[] = {"", "cooperative", "communicates", "captured", "launched_beside"};
  return kNames[static_cast<size_t>(why)];
}

std::string ChosenLaunches::choose(const std::string& pattern, uint32_t launches) {
  kernels_.clear();
  launches_ = launches;
  auto compiled = std::make_unique<regex_t>();
  if (const int error = regcomp(compiled.get(), pattern.c_str(), REG_EXTENDED | REG_NOSUB); error != 0) {
    char text[128];
    regerror(error, compiled.get(), text, sizeof text);
    return "'" + pattern + "' is not a POSIX extended regular expression: " + text;
  }
  pattern_.reset(compiled.release());
  return "";
}

bool ChosenLaunches::is_found_in(const std::string& text) const {
  return regexec(pattern_.get(), text.c_str(), 0, nullptr, 0) == 0;
}

ChosenLaunches::Kernel ChosenLaunches::look_at(const KernelLaunch& launch, std::string_view name) const {
  const std::string symbol = launch.symbol;
  if (!is_found_in(symbol) && !is_found_in(demangled(launch.symbol)) && !is_found_in(std::string(name))) return {};
  const bool communicates = std::ranges::any_of(kCommunicating, [&](std::string_view each) {
    return symbol.find(each) != symbol.npos || name.find(each) != name.npos;
  });
  return {true, {0}, {}, false, communicates ? NotMeasured::Communicates : NotMeasured::No};
}

ChosenLaunches::Kernel* ChosenLaunches::find(const KernelLaunch& launch, std::string_view name) {
  if (launch.function == nullptr || pattern_ == nullptr) return nullptr;
  const Key key{launch.context, launch.function, launch.symbol, launch.shape};
  auto found = kernels_.find(key);
  if (found == kernels_.end()) {
    if (kernels_.size() >= kMostKernels) return nullptr;
    found = kernels_.emplace(key, look_at(launch, name)).first;
  }
  Kernel& kernel = found->second;
  if (!kernel.is_chosen || kernel.why == NotMeasured::Communicates) return nullptr;
  if (std::ranges::min(kernel.measured) >= launches_) return nullptr;
  if (!launch.is_cooperative) return &kernel;
  kernel.why = NotMeasured::Cooperative;
  return nullptr;
}

size_t ChosenLaunches::Kernel::next_set(size_t last) const {
  const auto least = std::ranges::min_element(measured);
  return measured[last] == *least ? last : static_cast<size_t>(least - measured.begin());
}

uint64_t ChosenLaunches::measured_kernels() const {
  return static_cast<uint64_t>(
      std::ranges::count_if(kernels_, [](const auto& each) { return std::ranges::max(each.second.measured) > 0; }));
}

uint64_t ChosenLaunches::incomplete_kernels() const {
  return static_cast<uint64_t>(std::ranges::count_if(kernels_, [](const auto& each) {
    const Kernel& kernel = each.second;
    return std::ranges::min(kernel.measured) == 0 && (kernel.has_begun || std::ranges::max(kernel.measured) > 0);
  }));
}

std::string ChosenLaunches::not_measured_json() const {
  std::map<std::string, uint64_t> counts;
  for (const auto& [_, kernel] : kernels_)
    if (kernel.is_chosen && std::ranges::max(kernel.measured) == 0) ++counts[name_of(kernel.why)];
  JsonObject json;
  for (const auto& [why, count] : counts)
    if (!why.empty()) json.put(why, count);
  return json.text();
}

}  // namespace bragg
