// Allocation, copies and sets. Device memory is addresses only: nothing is moved.
#include <atomic>
#include <cstdlib>

#include "driver/timeline.h"

namespace bragg::fake {
namespace {

using enum cupti::CopyKind;
using cupti::MemoryKind;

constexpr size_t kAllocationStep = 512;
std::atomic<uint64_t> next_address{0x7f00'0000'0000};

cuda::Result copy(const CallSite& site, cupti::CopyKind kind, size_t size_bytes, cuda::Stream stream,
                  bool asynchronous) {
  return driver_call(site, [&](ApiCall& call) {
    Operation operation{cuda::GraphNodeType::Memcpy};
    operation.copy_kind = kind;
    operation.source_kind = kind == HostToDevice ? MemoryKind::Pageable : MemoryKind::Device;
    operation.target_kind = kind == DeviceToHost ? MemoryKind::Pageable : MemoryKind::Device;
    operation.size_bytes = size_bytes;
    operation.asynchronous = asynchronous;
    const cuda::Result result = submit(call, stream, operation);
    if (result == cuda::Result::Success && !asynchronous) wait_for(resolve(call.context, stream));
    return result;
  });
}

cuda::Result set(const CallSite& site, uint32_t value, size_t size_bytes, cuda::Stream stream, bool asynchronous) {
  return driver_call(site, [&](ApiCall& call) {
    Operation operation{cuda::GraphNodeType::Memset};
    operation.target_kind = MemoryKind::Device;
    operation.value = value;
    operation.size_bytes = size_bytes;
    operation.asynchronous = asynchronous;
    return submit(call, stream, operation);
  });
}

}  // namespace

FAKE_CUDA(cuMemAlloc_v2)(cuda::DevicePointer* pointer, size_t size_bytes) {
  return driver_call(call_site("cuMemAlloc_v2"), [&](ApiCall& call) {
    if (call.context == nullptr) return cuda::Result::InvalidContext;
    if (size_bytes == 0) return cuda::Result::InvalidValue;
    *pointer = next_address.fetch_add((size_bytes + kAllocationStep - 1) / kAllocationStep * kAllocationStep);
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuMemFree_v2)(cuda::DevicePointer) {
  return driver_call(call_site("cuMemFree_v2"), [](ApiCall& call) {
    if (call.context == nullptr) return cuda::Result::InvalidContext;
    wait_for(*call.context);
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuMemAllocHost_v2)(void** pointer, size_t size_bytes) {
  return driver_call(call_site("cuMemAllocHost_v2"), [&](ApiCall&) {
    *pointer = std::malloc(size_bytes);
    return *pointer != nullptr ? cuda::Result::Success : cuda::Result::OutOfMemory;
  });
}

FAKE_CUDA(cuMemFreeHost)(void* pointer) {
  return driver_call(call_site("cuMemFreeHost"), [&](ApiCall&) {
    std::free(pointer);
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuMemcpyHtoD_v2)(cuda::DevicePointer, const void*, size_t size_bytes) {
  return copy(call_site("cuMemcpyHtoD_v2"), HostToDevice, size_bytes, nullptr, false);
}

FAKE_CUDA(cuMemcpyDtoH_v2)(void*, cuda::DevicePointer, size_t size_bytes) {
  return copy(call_site("cuMemcpyDtoH_v2"), DeviceToHost, size_bytes, nullptr, false);
}

FAKE_CUDA(cuMemcpyDtoD_v2)(cuda::DevicePointer, cuda::DevicePointer, size_t size_bytes) {
  return copy(call_site("cuMemcpyDtoD_v2"), DeviceToDevice, size_bytes, nullptr, false);
}

FAKE_CUDA(cuMemcpyHtoDAsync_v2)(cuda::DevicePointer, const void*, size_t size_bytes, cuda::Stream stream) {
  return copy(call_site("cuMemcpyHtoDAsync_v2"), HostToDevice, size_bytes, stream, true);
}

FAKE_CUDA(cuMemcpyDtoHAsync_v2)(void*, cuda::DevicePointer, size_t size_bytes, cuda::Stream stream) {
  return copy(call_site("cuMemcpyDtoHAsync_v2"), DeviceToHost, size_bytes, stream, true);
}

FAKE_CUDA(cuMemcpyDtoDAsync_v2)(cuda::DevicePointer, cuda::DevicePointer, size_t size_bytes, cuda::Stream stream) {
  return copy(call_site("cuMemcpyDtoDAsync_v2"), DeviceToDevice, size_bytes, stream, true);
}

FAKE_CUDA(cuMemsetD8_v2)(cuda::DevicePointer, uint8_t value, size_t count) {
  return set(call_site("cuMemsetD8_v2"), value, count, nullptr, false);
}

FAKE_CUDA(cuMemsetD8Async)(cuda::DevicePointer, uint8_t value, size_t count, cuda::Stream stream) {
  return set(call_site("cuMemsetD8Async"), value, count, stream, true);
}

FAKE_CUDA(cuMemsetD32_v2)(cuda::DevicePointer, uint32_t value, size_t count) {
  return set(call_site("cuMemsetD32_v2"), value, count * sizeof value, nullptr, false);
}

FAKE_CUDA(cuMemsetD32Async)(cuda::DevicePointer, uint32_t value, size_t count, cuda::Stream stream) {
  return set(call_site("cuMemsetD32Async"), value, count * sizeof value, stream, true);
}

}  // namespace bragg::fake
