#include "backends/cuda/samples/function_cubins.h"

#include <limits>

namespace bragg {
namespace {

thread_local uint64_t loaded_crc = 0;  // in the driver call that this thread is in; 0: nothing

// The parameters of all these calls begin so; the source of a function is its module.
struct ModuleCallParams {
  void** result;
  const void* source;
};

}  // namespace

FunctionCubins& FunctionCubins::instance() {
  static FunctionCubins& cubins = *new FunctionCubins;  // launches come until the process is gone
  return cubins;
}

void FunctionCubins::note_cubin(uint64_t crc) noexcept { loaded_crc = crc; }

// A module that is loaded lazily is when its first function is asked for.
void FunctionCubins::note_call(uint32_t cbid, const cupti::CallbackData& data) noexcept {
  if (data.site == cupti::CallbackSite::Enter) {
    loaded_crc = 0;
    return;
  }
  const auto& params = *static_cast<const ModuleCallParams*>(data.function_params);
  if (*static_cast<const cuda::Result*>(data.function_return_value) != cuda::Result::Success) return;
  const std::lock_guard lock(mutex_);
  if (cbid != cupti::kModuleGetFunction) {
    of_module_[*params.result] = number_of(loaded_crc);
    return;
  }
  if (loaded_crc != 0) of_module_[params.source] = number_of(loaded_crc);
  of_function_[*params.result] = of_module_[params.source];
}

CubinNumber FunctionCubins::number_of(uint64_t crc) {
  if (crc == 0) return 0;
  const auto [found, is_new] = numbers_.try_emplace(crc, static_cast<CubinNumber>(crcs_.size()));
  if (is_new && crcs_.size() > std::numeric_limits<CubinNumber>::max()) found->second = 0;
  if (is_new && found->second != 0) crcs_.push_back(crc);
  return found->second;
}

uint64_t FunctionCubins::crc(CubinNumber number) {
  const std::lock_guard lock(mutex_);
  return crcs_[number];
}

CubinNumber FunctionCubins::find(const void* function) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = of_function_.find(function);
  return found != of_function_.end() ? found->second : 0;
}

}  // namespace bragg
