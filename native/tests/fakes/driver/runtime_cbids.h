// Callback ids of the runtime's calls that the fake has, with the names that CUPTI has for them.
#pragma once

#include <cstdint>
#include <string_view>

namespace bragg::fake {

struct RuntimeCall {
  uint32_t cbid;
  const char* name;           // the function's
  const char* callback_name;  // of cuptiGetCallbackName
};

inline constexpr RuntimeCall runtime_calls[] = {{17, "cudaGetDevice", "cudaGetDevice_v3020"},
                                                {20, "cudaMalloc", "cudaMalloc_v3020"},
                                                {22, "cudaFree", "cudaFree_v3020"},
                                                {31, "cudaMemcpy", "cudaMemcpy_v3020"},
                                                {41, "cudaMemcpyAsync", "cudaMemcpyAsync_v3020"},
                                                {131, "cudaStreamSynchronize", "cudaStreamSynchronize_v3020"},
                                                {165, "cudaDeviceSynchronize", "cudaDeviceSynchronize_v3020"},
                                                {211, "cudaLaunchKernel", "cudaLaunchKernel_v7000"},
                                                {311, "cudaGraphLaunch", "cudaGraphLaunch_v10000"}};

// "" when the fake has no such call.
[[nodiscard]] constexpr std::string_view runtime_call_name(uint32_t cbid) noexcept {
  for (const RuntimeCall& call : runtime_calls) {
    if (call.cbid == cbid) return call.callback_name;
  }
  return "";
}

}  // namespace bragg::fake
