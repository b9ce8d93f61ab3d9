// Driver callback ids of the calls of the fake driver that are in no table of the product.
#pragma once

#include "backends/cuda/driver/cupti_cbids.h"

namespace bragg::fake {

inline constexpr cupti::DriverCall other_calls[] = {{1, "cuInit"},
                                                    {2, "cuDriverGetVersion"},
                                                    {3, "cuDeviceGet"},
                                                    {4, "cuDeviceGetCount"},
                                                    {5, "cuDeviceGetName"},
                                                    {9, "cuDeviceGetAttribute"},
                                                    {16, "cuCtxGetDevice"},
                                                    {17, "cuCtxSynchronize"},
                                                    {19, "cuModuleLoadData"},
                                                    {22, "cuModuleUnload"},
                                                    {23, "cuModuleGetFunction"},
                                                    {38, "cuMemFreeHost"},
                                                    {118, "cuEventCreate"},
                                                    {119, "cuEventRecord"},
                                                    {120, "cuEventQuery"},
                                                    {121, "cuEventSynchronize"},
                                                    {123, "cuEventElapsedTime"},
                                                    {124, "cuStreamCreate"},
                                                    {125, "cuStreamQuery"},
                                                    {126, "cuStreamSynchronize"},
                                                    {235, "cuCtxCreate_v2"},
                                                    {247, "cuMemHostGetDevicePointer_v2"},
                                                    {259, "cuDeviceTotalMem_v2"},
                                                    {294, "cuMemAllocHost_v2"},
                                                    {295, "cuStreamWaitEvent"},
                                                    {303, "cuCtxSetCurrent"},
                                                    {304, "cuCtxGetCurrent"},
                                                    {310, "cuPointerGetAttribute"},
                                                    {322, "cuCtxDestroy_v2"},
                                                    {323, "cuCtxPushCurrent_v2"},
                                                    {324, "cuCtxPopCurrent_v2"},
                                                    {325, "cuEventDestroy_v2"},
                                                    {326, "cuStreamDestroy_v2"},
                                                    {373, "cuGetErrorName"},
                                                    {379, "cuMemHostRegister_v2"},
                                                    {386, "cuDevicePrimaryCtxRetain"},
                                                    {392, "cuDevicePrimaryCtxGetState"},
                                                    {483, "cuStreamGetCtx"},
                                                    {499, "cuStreamIsCapturing"},
                                                    {501, "cuGraphCreate"},
                                                    {504, "cuGraphAddMemcpyNode"},
                                                    {506, "cuGraphAddMemsetNode"},
                                                    {516, "cuGraphExecDestroy"},
                                                    {517, "cuGraphDestroy"},
                                                    {523, "cuGraphClone"},
                                                    {525, "cuGraphAddChildGraphNode"},
                                                    {526, "cuGraphAddEmptyNode"},
                                                    {541, "cuThreadExchangeStreamCaptureMode"},
                                                    {544, "cuDevicePrimaryCtxRelease_v2"},
                                                    {547, "cuMemAddressReserve"},
                                                    {647, "cuDeviceGetUuid_v2"},
                                                    {689, "cuGraphAddKernelNode_v2"},
                                                    {695, "cuCtxGetId"},
                                                    {722, "cuGraphConditionalHandleCreate"},
                                                    {723, "cuGraphAddNode_v2"}};

// "" when the fake has no such call.
[[nodiscard]] constexpr std::string_view any_driver_call_name(uint32_t cbid) noexcept {
  for (const cupti::DriverCall& call : other_calls) {
    if (call.cbid == cbid) return call.name;
  }
  return cupti::driver_call_name(cbid);
}

// Where a driver call is known from: its callback id and the name CUPTI shows.
struct CallSite {
  uint32_t cbid;
  const char* name;
};

[[nodiscard]] consteval CallSite call_site(const char* name) {
  for (const cupti::DriverCall& call : other_calls) {
    if (call.name == name) return {call.cbid, name};
  }
  return {cupti::cbid_of(name), name};
}

}  // namespace bragg::fake
