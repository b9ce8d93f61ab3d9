#include "backends/cuda/driver/cuda_functions.h"

#include <atomic>
#include <memory>

#include "context/loaded_library.h"

namespace bragg {
namespace {

// The symbol that is missing, or nullptr.
const char* resolve(const LoadedLibrary& library, CudaFunctions& functions) {
  const char* missing = nullptr;
  const auto find = [&]<class Function>(const char* symbol, Function*& function) {
    function = library.function<Function>(symbol);
    if (function == nullptr) missing = symbol;
  };
  find("cuGetErrorName", functions.get_error_name);
  find("cuCtxGetCurrent", functions.context_current);
  find("cuCtxGetDevice", functions.context_device);
  find("cuCtxPushCurrent_v2", functions.push_context);
  find("cuCtxPopCurrent_v2", functions.pop_context);
  find("cuDevicePrimaryCtxRetain", functions.retain_primary);
  find("cuDevicePrimaryCtxRelease_v2", functions.release_primary);
  find("cuModuleLoadData", functions.load_module);
  find("cuModuleGetFunction", functions.module_function);
  find("cuLaunchKernel", functions.launch);
  find("cuMemHostRegister_v2", functions.register_memory);
  find("cuMemHostGetDevicePointer_v2", functions.device_pointer);
  find("cuPointerGetAttribute", functions.pointer_attribute);
  find("cuStreamGetCtx", functions.stream_context);
  find("cuStreamIsCapturing", functions.stream_is_capturing);
  find("cuThreadExchangeStreamCaptureMode", functions.exchange_capture_mode);
  functions.context_id = library.function<cuda::CuCtxGetId>("cuCtxGetId");
  return missing;
}

}  // namespace

// Threads may look at once, and a fork may come meanwhile: no lock.
const CudaFunctions* CudaFunctions::find(std::string& reason) {
  static constinit std::atomic<const CudaFunctions*> found{nullptr};
  if (const CudaFunctions* functions = found.load(std::memory_order_acquire)) return functions;
  const LoadedLibrary library = LoadedLibrary::already_mapped("libcuda.so.1");
  if (!library) {
    reason = "this process has not loaded a CUDA driver";
    return nullptr;
  }
  auto functions = std::make_unique<CudaFunctions>();
  if (const char* missing = resolve(library, *functions)) {
    reason = std::string("the CUDA driver lacks ") + missing;
    return nullptr;
  }
  const CudaFunctions* first = nullptr;
  return found.compare_exchange_strong(first, functions.get()) ? functions.release() : first;
}

std::string CudaFunctions::failure(const char* call, cuda::Result result) const {
  const char* name = nullptr;
  (void)get_error_name(result, &name);
  return std::string(call) + " failed: " + (name != nullptr ? name : "CUDA error") + " (" +
         std::to_string(static_cast<uint32_t>(result)) + ")";
}

}  // namespace bragg
