// The part of the CUDA runtime that tests use: calls of the driver within calls of the runtime. Where the vendor's
// takes a host function this takes a function of the driver.
#include "driver/runtime_cbids.h"

#include "driver/driver_call.h"

namespace bragg::fake {
namespace {

struct Dimensions {
  uint32_t x, y, z;
};

consteval CallSite runtime_site(std::string_view name) {
  for (const RuntimeCall& call : runtime_calls) {
    if (call.name == name) return {call.cbid, call.name};
  }
  throw "not a call of this table";
}

template <class Body>
cuda::Result runtime_call(const CallSite& site, Body&& body) {
  return driver_call(site, {.domain = cupti::Domain::RuntimeApi}, [&](ApiCall&) { return body(); });
}

enum class Direction : int32_t { HostToHost, HostToDevice, DeviceToHost, DeviceToDevice };

}  // namespace

FAKE_CUDA(cuCtxGetDevice)(cuda::Device* device);
FAKE_CUDA(cuCtxSynchronize)();
FAKE_CUDA(cuStreamSynchronize)(cuda::Stream stream);
FAKE_CUDA(cuMemAlloc_v2)(cuda::DevicePointer* pointer, size_t size_bytes);
FAKE_CUDA(cuMemFree_v2)(cuda::DevicePointer pointer);
FAKE_CUDA(cuMemcpyHtoD_v2)(cuda::DevicePointer target, const void* source, size_t size_bytes);
FAKE_CUDA(cuMemcpyDtoH_v2)(void* target, cuda::DevicePointer source, size_t size_bytes);
FAKE_CUDA(cuMemcpyHtoDAsync_v2)(cuda::DevicePointer target, const void* source, size_t size_bytes, cuda::Stream stream);
FAKE_CUDA(cuMemcpyDtoHAsync_v2)(void* target, cuda::DevicePointer source, size_t size_bytes, cuda::Stream stream);
FAKE_CUDA(cuGraphLaunch)(cuda::GraphExec exec, cuda::Stream stream);
FAKE_CUDA(cuLaunchKernel)(cuda::Function function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                          uint32_t block_y, uint32_t block_z, uint32_t dynamic_shared_bytes, cuda::Stream stream,
                          void** arguments, void** extra);

FAKE_CUDA(cudaGetDevice)(cuda::Device* device) {
  return runtime_call(runtime_site("cudaGetDevice"), [&] { return cuCtxGetDevice(device); });
}

FAKE_CUDA(cudaMalloc)(cuda::DevicePointer* pointer, size_t size_bytes) {
  return runtime_call(runtime_site("cudaMalloc"), [&] { return cuMemAlloc_v2(pointer, size_bytes); });
}

FAKE_CUDA(cudaFree)(cuda::DevicePointer pointer) {
  return runtime_call(runtime_site("cudaFree"), [&] { return cuMemFree_v2(pointer); });
}

FAKE_CUDA(cudaMemcpy)(void*, const void*, size_t size_bytes, Direction direction) {
  return runtime_call(runtime_site("cudaMemcpy"), [&] {
    return direction == Direction::DeviceToHost ? cuMemcpyDtoH_v2(nullptr, 0, size_bytes)
                                                : cuMemcpyHtoD_v2(0, nullptr, size_bytes);
  });
}

FAKE_CUDA(cudaMemcpyAsync)(void*, const void*, size_t size_bytes, Direction direction, cuda::Stream stream) {
  return runtime_call(runtime_site("cudaMemcpyAsync"), [&] {
    return direction == Direction::DeviceToHost ? cuMemcpyDtoHAsync_v2(nullptr, 0, size_bytes, stream)
                                                : cuMemcpyHtoDAsync_v2(0, nullptr, size_bytes, stream);
  });
}

FAKE_CUDA(cudaStreamSynchronize)(cuda::Stream stream) {
  return runtime_call(runtime_site("cudaStreamSynchronize"), [&] { return cuStreamSynchronize(stream); });
}

FAKE_CUDA(cudaDeviceSynchronize)() {
  return runtime_call(runtime_site("cudaDeviceSynchronize"), [&] { return cuCtxSynchronize(); });
}

FAKE_CUDA(cudaLaunchKernel)(cuda::Function function, Dimensions grid, Dimensions block, void** arguments,
                            size_t dynamic_shared_bytes, cuda::Stream stream) {
  return runtime_call(runtime_site("cudaLaunchKernel"), [&] {
    return cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                          static_cast<uint32_t>(dynamic_shared_bytes), stream, arguments, nullptr);
  });
}

FAKE_CUDA(cudaGraphLaunch)(cuda::GraphExec exec, cuda::Stream stream) {
  return runtime_call(runtime_site("cudaGraphLaunch"), [&] { return cuGraphLaunch(exec, stream); });
}

}  // namespace bragg::fake
