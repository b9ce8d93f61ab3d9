// The functions of the CUDA driver that put work on a GPU themselves, resolved once.
#pragma once

#include <string>

#include "backends/cuda/driver/cuda_abi.h"

namespace bragg {

struct CudaFunctions {
  cuda::CuGetErrorName* get_error_name = nullptr;
  cuda::CuCtxGetCurrent* context_current = nullptr;
  cuda::CuCtxGetDevice* context_device = nullptr;
  cuda::CuCtxGetId* context_id = nullptr;  // optional, from 12.0
  cuda::CuCtxPushCurrent* push_context = nullptr;
  cuda::CuCtxPopCurrent* pop_context = nullptr;
  cuda::CuDevicePrimaryCtxRetain* retain_primary = nullptr;
  cuda::CuDevicePrimaryCtxRelease* release_primary = nullptr;
  cuda::CuModuleLoadData* load_module = nullptr;
  cuda::CuModuleGetFunction* module_function = nullptr;
  cuda::CuLaunchKernel* launch = nullptr;
  cuda::CuMemHostRegister* register_memory = nullptr;
  cuda::CuMemHostGetDevicePointer* device_pointer = nullptr;
  cuda::CuPointerGetAttribute* pointer_attribute = nullptr;
  cuda::CuStreamGetCtx* stream_context = nullptr;
  cuda::CuStreamIsCapturing* stream_is_capturing = nullptr;
  cuda::CuThreadExchangeStreamCaptureMode* exchange_capture_mode = nullptr;

  // nullptr: the program has not loaded a CUDA driver, or it lacks a function, as `reason` says. Threads: any.
  [[nodiscard]] static const CudaFunctions* find(std::string& reason);

  // "cuLaunchKernel failed: CUDA_ERROR_INVALID_HANDLE (400)"
  [[nodiscard]] std::string failure(const char* call, cuda::Result result) const;
};

}  // namespace bragg
