// Devices and contexts.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>

#include "driver/timeline.h"

namespace bragg::fake {
namespace {

constexpr uint32_t kDefaultStreamId = 7;

// The contexts of one thread, the current one last. It has no destructor: a tool may come at process exit, after those
// of the main thread have run.
class ContextStack {
 public:
  [[nodiscard]] cuda::Context current() const { return depth_ == 0 ? nullptr : contexts_[depth_ - 1]; }
  [[nodiscard]] bool push(cuda::Context context) {
    if (depth_ == kDepth) return false;
    contexts_[depth_++] = context;
    return true;
  }
  void pop() { depth_ -= depth_ > 0 ? 1 : 0; }
  void remove(cuda::Context context) {
    depth_ = static_cast<size_t>(std::remove(contexts_, contexts_ + depth_, context) - contexts_);
  }

 private:
  static constexpr size_t kDepth = 64;
  cuda::Context contexts_[kDepth];
  size_t depth_;
};
constinit thread_local ContextStack context_stack{};

struct Contexts {
  std::mutex mutex;
  std::deque<cuda::ContextHandle> all;  // never removed: a tool may still ask for one that was destroyed
  struct Primary {
    cuda::Context context = nullptr;
    uint64_t retained = 0;
  };
  std::map<uint32_t, Primary> primary;  // that exist
};

Contexts& contexts() {
  static Contexts& self = *new Contexts;
  return self;
}

cuda::Context add_context(Contexts& self, uint32_t device) {
  cuda::ContextHandle& context = self.all.emplace_back();
  context.device = device;
  context.id = static_cast<uint32_t>(self.all.size());
  context.default_stream.context = &context;
  context.default_stream.id = kDefaultStreamId;
  return &context;
}

bool is_device(cuda::Device device) { return device >= 0 && device < knob(Knob::Devices); }

// As an H200 was seen to do, whatever the mode of the capture and whichever thread captures.
bool invalidate_captures(cuda::ContextHandle& context) {
  bool any = false;
  const std::lock_guard lock(context.mutex);
  for (const auto& stream : context.streams) {
    const std::lock_guard stream_lock(stream->mutex);
    if (stream->capture != nullptr) stream->is_capture_invalid = any = true;
  }
  return any;
}

// An H200, as its data sheet and driver describe it.
int32_t attribute_of_h200(cuda::DeviceAttribute attribute) {
  using enum cuda::DeviceAttribute;
  switch (attribute) {
    case ClockKhz:
      return 1'980'000;
    case MultiprocessorCount:
      return 132;
    case MemoryClockKhz:
      return 3'201'000;
    case MemoryBusWidthBits:
      return 6144;
    case L2CacheBytes:
      return 62'914'560;
    case MaxThreadsPerMultiprocessor:
      return 2048;
    case ComputeCapabilityMajor:
      return 9;
    case ComputeCapabilityMinor:
      return 0;
    case MaxSharedBytesPerMultiprocessor:
      return 233'472;
  }
  return 0;
}

}  // namespace

cuda::Context current_context() noexcept { return context_stack.current(); }

FAKE_CUDA(cuDeviceGetCount)(int32_t* count) {
  return driver_call(call_site("cuDeviceGetCount"), [&](ApiCall&) {
    *count = static_cast<int32_t>(knob(Knob::Devices));
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuDeviceGetCount, CuDeviceGetCount);

FAKE_CUDA(cuDeviceGet)(cuda::Device* device, int32_t ordinal) {
  return driver_call(call_site("cuDeviceGet"), [&](ApiCall&) {
    if (!is_device(ordinal)) return cuda::Result::InvalidDevice;
    *device = ordinal;
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuDeviceGet, CuDeviceGet);

FAKE_CUDA(cuDeviceGetName)(char* name, int32_t name_size_bytes, cuda::Device device) {
  return driver_call(call_site("cuDeviceGetName"), [&](ApiCall&) {
    if (!is_device(device)) return cuda::Result::InvalidDevice;
    std::snprintf(name, static_cast<size_t>(name_size_bytes), "Virtual GPU %d", device);
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuDeviceGetName, CuDeviceGetName);

// BRAGG_FAKE_GPUS names the machine's GPUs: processes with one name share them. Else each process has its own.
FAKE_CUDA(cuDeviceGetUuid_v2)(cuda::Uuid* uuid, cuda::Device device) {
  return driver_call(call_site("cuDeviceGetUuid_v2"), [&](ApiCall&) {
    if (!is_device(device)) return cuda::Result::InvalidDevice;
    const std::string machine = setting("GPUS", std::to_string(getpid()).c_str());
    const uint64_t parts[] = {cubin_crc(machine.data(), machine.size()), static_cast<uint64_t>(device)};
    std::memcpy(uuid->bytes, parts, sizeof parts);
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuDeviceGetUuid_v2, CuDeviceGetUuid);

FAKE_CUDA(cuDeviceGetAttribute)(int32_t* value, cuda::DeviceAttribute attribute, cuda::Device device) {
  return driver_call(call_site("cuDeviceGetAttribute"), [&](ApiCall&) {
    if (!is_device(device)) return cuda::Result::InvalidDevice;
    *value = attribute_of_h200(attribute);
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuDeviceGetAttribute, CuDeviceGetAttribute);

FAKE_CUDA(cuDeviceTotalMem_v2)(size_t* size_bytes, cuda::Device device) {
  return driver_call(call_site("cuDeviceTotalMem_v2"), [&](ApiCall&) {
    if (!is_device(device)) return cuda::Result::InvalidDevice;
    *size_bytes = size_t{141} << 30;
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuDeviceTotalMem_v2, CuDeviceTotalMem);

FAKE_CUDA(cuDevicePrimaryCtxRetain)(cuda::Context* context, cuda::Device device) {
  return driver_call(call_site("cuDevicePrimaryCtxRetain"), [&](ApiCall&) {
    if (!is_device(device)) return cuda::Result::InvalidDevice;
    std::unique_lock lock(contexts().mutex);
    auto& primary = contexts().primary[static_cast<uint32_t>(device)];
    const bool created = primary.retained++ == 0;
    if (created) primary.context = add_context(contexts(), static_cast<uint32_t>(device));
    *context = primary.context;
    lock.unlock();
    if (created) notify_resource(cupti::resource::kContextCreated, *context, nullptr, nullptr);
    return cuda::Result::Success;
  });
}

FAKE_CUDA_IS(cuDevicePrimaryCtxRetain, CuDevicePrimaryCtxRetain);

FAKE_CUDA(cuDevicePrimaryCtxGetState)(cuda::Device device, uint32_t* flags, int32_t* active) {
  return driver_call(call_site("cuDevicePrimaryCtxGetState"), [&](ApiCall&) {
    if (!is_device(device)) return cuda::Result::InvalidDevice;
    const std::lock_guard lock(contexts().mutex);
    *flags = 0;
    *active = contexts().primary.contains(static_cast<uint32_t>(device)) ? 1 : 0;
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuDevicePrimaryCtxGetState, CuDevicePrimaryCtxGetState);

FAKE_CUDA(cuDevicePrimaryCtxRelease_v2)(cuda::Device device) {
  return driver_call(call_site("cuDevicePrimaryCtxRelease_v2"), [&](ApiCall&) {
    std::unique_lock lock(contexts().mutex);
    const auto found = contexts().primary.find(static_cast<uint32_t>(device));
    if (found == contexts().primary.end()) return cuda::Result::InvalidContext;
    if (--found->second.retained > 0) return cuda::Result::Success;
    const cuda::Context context = found->second.context;
    contexts().primary.erase(found);
    lock.unlock();
    notify_resource(cupti::resource::kContextDestroyStarting, context, nullptr, nullptr);
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuDevicePrimaryCtxRelease_v2, CuDevicePrimaryCtxRelease);

FAKE_CUDA(cuCtxCreate_v2)(cuda::Context* context, uint32_t, cuda::Device device) {
  return driver_call(call_site("cuCtxCreate_v2"), [&](ApiCall&) {
    if (!is_device(device)) return cuda::Result::InvalidDevice;
    {
      const std::lock_guard lock(contexts().mutex);
      *context = add_context(contexts(), static_cast<uint32_t>(device));
    }
    if (!context_stack.push(*context)) return cuda::Result::OutOfMemory;
    notify_resource(cupti::resource::kContextCreated, *context, nullptr, nullptr);
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuCtxDestroy_v2)(cuda::Context context) {
  return driver_call(call_site("cuCtxDestroy_v2"), [&](ApiCall&) {
    if (context == nullptr) return cuda::Result::InvalidContext;
    notify_resource(cupti::resource::kContextDestroyStarting, context, nullptr, nullptr);
    context_stack.remove(context);
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuCtxSetCurrent)(cuda::Context context) {
  return driver_call(call_site("cuCtxSetCurrent"), [&](ApiCall&) {
    context_stack.pop();
    return context == nullptr || context_stack.push(context) ? cuda::Result::Success : cuda::Result::OutOfMemory;
  });
}

FAKE_CUDA(cuCtxGetCurrent)(cuda::Context* context) {
  return driver_call(call_site("cuCtxGetCurrent"), [&](ApiCall& call) {
    *context = call.context;
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuCtxGetCurrent, CuCtxGetCurrent);

FAKE_CUDA(cuCtxGetDevice)(cuda::Device* device) {
  return driver_call(call_site("cuCtxGetDevice"), [&](ApiCall& call) {
    if (call.context == nullptr) return cuda::Result::InvalidContext;
    *device = static_cast<cuda::Device>(call.context->device);
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuCtxGetDevice, CuCtxGetDevice);

FAKE_CUDA(cuCtxGetId)(cuda::Context context, uint64_t* id) {
  return driver_call(call_site("cuCtxGetId"), [&](ApiCall& call) {
    if (context == nullptr) context = call.context;
    if (context == nullptr) return cuda::Result::InvalidContext;
    *id = context->id;
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuCtxGetId, CuCtxGetId);

FAKE_CUDA(cuCtxPushCurrent_v2)(cuda::Context context) {
  return driver_call(call_site("cuCtxPushCurrent_v2"), [&](ApiCall&) {
    if (context == nullptr) return cuda::Result::InvalidContext;
    return context_stack.push(context) ? cuda::Result::Success : cuda::Result::OutOfMemory;
  });
}
FAKE_CUDA_IS(cuCtxPushCurrent_v2, CuCtxPushCurrent);

FAKE_CUDA(cuCtxPopCurrent_v2)(cuda::Context* context) {
  return driver_call(call_site("cuCtxPopCurrent_v2"), [&](ApiCall& call) {
    if (call.context == nullptr) return cuda::Result::InvalidContext;
    if (context != nullptr) *context = call.context;
    context_stack.pop();
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuCtxPopCurrent_v2, CuCtxPopCurrent);

FAKE_CUDA(cuCtxSynchronize)() {
  return driver_call(call_site("cuCtxSynchronize"), [](ApiCall& call) {
    if (call.context == nullptr) return cuda::Result::InvalidContext;
    if (invalidate_captures(*call.context)) return cuda::Result::StreamCaptureUnsupported;
    wait_for(*call.context);
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuCtxSynchronize, CuCtxSynchronize);

}  // namespace bragg::fake
