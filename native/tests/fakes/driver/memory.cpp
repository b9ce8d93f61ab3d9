// Allocation, copies and sets. Nothing is moved.
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

#include "driver/timeline.h"

namespace bragg::fake {
namespace {

using enum cupti::CopyKind;
using cupti::MemoryKind;

// Device memory: pages of the process that cost nothing until a test writes to them.
struct Allocations {
  struct Allocation {
    size_t size_bytes;
    uint32_t device;
  };
  std::mutex mutex;
  std::map<cuda::DevicePointer, Allocation> by_address;
};

Allocations& allocations() {
  static Allocations& self = *new Allocations;
  return self;
}

struct Handles {
  std::atomic<uint64_t> last{0};
  std::atomic<cuda::DevicePointer> next_address{0x7000'0000'0000};
  std::mutex mutex;
  std::map<cuda::DevicePointer, uint64_t> by_address;
};

Handles& handles() {
  static Handles& self = *new Handles;
  return self;
}

struct TakeParams {
  cuda::DevicePointer* pointer;
  size_t size_bytes;
};

cuda::Result take(const ApiCall& call, const TakeParams& params) {
  if (call.context == nullptr) return cuda::Result::InvalidContext;
  if (params.size_bytes == 0) return cuda::Result::InvalidValue;
  void* memory =
      mmap(nullptr, params.size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return cuda::Result::OutOfMemory;
  *params.pointer = reinterpret_cast<cuda::DevicePointer>(memory);
  const std::lock_guard lock(allocations().mutex);
  allocations().by_address[*params.pointer] = {params.size_bytes, call.context->device};
  return cuda::Result::Success;
}

cuda::Result give_back(cuda::DevicePointer pointer) {
  const std::lock_guard lock(allocations().mutex);
  const auto freed = allocations().by_address.extract(pointer);
  if (freed.empty()) return pointer == 0 ? cuda::Result::Success : cuda::Result::InvalidValue;
  munmap(reinterpret_cast<void*>(pointer), freed.mapped().size_bytes);
  return cuda::Result::Success;
}

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
  const TakeParams params{pointer, size_bytes};
  return driver_call(call_site("cuMemAlloc_v2"), {.params = &params},
                     [&](ApiCall& call) { return take(call, params); });
}

FAKE_CUDA(cuMemAllocAsync)(cuda::DevicePointer* pointer, size_t size_bytes, cuda::Stream) {
  const TakeParams params{pointer, size_bytes};
  return driver_call(call_site("cuMemAllocAsync"), {.params = &params},
                     [&](ApiCall& call) { return take(call, params); });
}

FAKE_CUDA(cuMemFree_v2)(cuda::DevicePointer pointer) {
  return driver_call(call_site("cuMemFree_v2"), {.params = &pointer}, [&](ApiCall& call) {
    if (call.context == nullptr) return cuda::Result::InvalidContext;
    wait_for(*call.context);
    return give_back(pointer);
  });
}

FAKE_CUDA(cuMemFreeAsync)(cuda::DevicePointer pointer, cuda::Stream) {
  return driver_call(call_site("cuMemFreeAsync"), {.params = &pointer}, [&](ApiCall&) { return give_back(pointer); });
}

FAKE_CUDA(cuMemAllocManaged)(cuda::DevicePointer* pointer, size_t size_bytes, uint32_t) {
  const TakeParams params{pointer, size_bytes};
  return driver_call(call_site("cuMemAllocManaged"), {.params = &params},
                     [&](ApiCall& call) { return take(call, params); });
}

// Memory by a handle, and addresses for it: only what calls say of them.
FAKE_CUDA(cuMemCreate)(uint64_t* handle, size_t size_bytes, const void* properties, uint64_t) {
  const struct {
    uint64_t* handle;
    size_t size_bytes;
    const void* properties;
  } params{handle, size_bytes, properties};
  return driver_call(call_site("cuMemCreate"), {.params = &params}, [&](ApiCall&) {
    *handle = handles().last.fetch_add(1) + 1;
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuMemRelease)(uint64_t handle) {
  return driver_call(call_site("cuMemRelease"), {.params = &handle},
                     [&](ApiCall&) { return handle != 0 ? cuda::Result::Success : cuda::Result::InvalidValue; });
}

FAKE_CUDA(cuMemAddressReserve)(cuda::DevicePointer* pointer, size_t size_bytes, size_t, cuda::DevicePointer, uint64_t) {
  return driver_call(call_site("cuMemAddressReserve"), [&](ApiCall&) {
    *pointer = handles().next_address.fetch_add(size_bytes);
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuMemMap)(cuda::DevicePointer address, size_t size_bytes, size_t offset, uint64_t handle, uint64_t) {
  const struct {
    cuda::DevicePointer address;
    size_t size_bytes, offset;
    uint64_t handle;
  } params{address, size_bytes, offset, handle};
  return driver_call(call_site("cuMemMap"), {.params = &params}, [&](ApiCall&) {
    const std::lock_guard lock(handles().mutex);
    handles().by_address[address] = handle;
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuMemUnmap)(cuda::DevicePointer address, size_t size_bytes) {
  const struct {
    cuda::DevicePointer address;
    size_t size_bytes;
  } params{address, size_bytes};
  return driver_call(call_site("cuMemUnmap"), {.params = &params}, [&](ApiCall&) {
    const std::lock_guard lock(handles().mutex);
    auto& mapped = handles().by_address;
    mapped.erase(mapped.lower_bound(address), mapped.lower_bound(address + size_bytes));
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuMemRetainAllocationHandle)(uint64_t* handle, void* address) {
  const struct {
    uint64_t* handle;
    void* address;
  } params{handle, address};
  return driver_call(call_site("cuMemRetainAllocationHandle"), {.params = &params}, [&](ApiCall&) {
    const std::lock_guard lock(handles().mutex);
    const auto found = handles().by_address.find(reinterpret_cast<cuda::DevicePointer>(address));
    if (found == handles().by_address.end()) return cuda::Result::InvalidValue;
    *handle = found->second;
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuPointerGetAttribute)(void* value, cuda::PointerAttribute attribute, cuda::DevicePointer pointer) {
  return driver_call(call_site("cuPointerGetAttribute"), [&](ApiCall&) {
    if (attribute != cuda::PointerAttribute::DeviceOrdinal) return cuda::Result::NotSupported;
    const std::lock_guard lock(allocations().mutex);
    const auto after = allocations().by_address.upper_bound(pointer);
    if (after == allocations().by_address.begin()) return cuda::Result::InvalidValue;
    const auto& [address, allocation] = *std::prev(after);
    if (pointer >= address + allocation.size_bytes) return cuda::Result::InvalidValue;
    *static_cast<int32_t*>(value) = static_cast<int32_t>(allocation.device);
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuPointerGetAttribute, CuPointerGetAttribute);

FAKE_CUDA(cuMemHostRegister_v2)(void*, size_t, uint32_t) {
  return driver_call(call_site("cuMemHostRegister_v2"), [](ApiCall& call) {
    if (call.context == nullptr) return cuda::Result::InvalidContext;
    return may_wait() ? cuda::Result::Success : cuda::Result::StreamCaptureUnsupported;
  });
}
FAKE_CUDA_IS(cuMemHostRegister_v2, CuMemHostRegister);

FAKE_CUDA(cuMemHostGetDevicePointer_v2)(cuda::DevicePointer* device, void* memory, uint32_t) {
  return driver_call(call_site("cuMemHostGetDevicePointer_v2"), [&](ApiCall&) {
    *device = reinterpret_cast<cuda::DevicePointer>(memory);
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuMemHostGetDevicePointer_v2, CuMemHostGetDevicePointer);

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
