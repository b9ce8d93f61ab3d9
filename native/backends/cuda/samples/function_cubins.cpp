#include "backends/cuda/samples/function_cubins.h"

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
    of_module_[*params.result] = CodeNumbers::instance().number_of(loaded_crc);
    return;
  }
  if (loaded_crc != 0) of_module_[params.source] = CodeNumbers::instance().number_of(loaded_crc);
  of_function_[*params.result] = of_module_[params.source];
}

CodeNumber FunctionCubins::find(const void* function) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = of_function_.find(function);
  return found != of_function_.end() ? found->second : CodeNumber::None;
}

}  // namespace bragg
