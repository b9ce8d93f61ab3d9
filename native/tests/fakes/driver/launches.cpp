// Modules, functions and kernel launches. A module has every function it is asked for.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <thread>

#include "backends/cuda/driver/cupti_pc_sampling.h"
#include "driver/owned.h"
#include "driver/timeline.h"
#include "driver/value_kernel.h"

namespace bragg::fake {
namespace {

struct Functions {
  std::mutex mutex;
  std::map<std::pair<cuda::Module, std::string>, cuda::FunctionHandle> by_name;  // never removed: records name them
};

cuda::Function function_named(cuda::Module module, const char* name) {
  static Functions& functions = *new Functions;
  const std::lock_guard lock(functions.mutex);
  const auto [found, is_new] = functions.by_name.try_emplace({module, name});
  if (is_new) {
    found->second.name = name;
    found->second.cubin_crc = module != nullptr ? module->cubin_crc : 0;
  }
  return &found->second;
}

// As CUDA lays out the parameters of the call for callbacks.
struct LaunchParams {
  cuda::Function function;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t dynamic_shared_bytes;
  cuda::Stream stream;
  void** arguments;
  void** extra;
};

struct ModuleLoadParams {
  cuda::Module* module;
  const void* image;
};

struct ModuleGetFunctionParams {
  cuda::Function* function;
  cuda::Module module;
  const char* name;
};

struct LaunchAttribute {
  uint32_t id;
  uint32_t padding;
  uint32_t value[16];
};
constexpr uint32_t kClusterDimension = 4;

struct LaunchConfig {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t dynamic_shared_bytes;
  cuda::Stream stream;
  LaunchAttribute* attributes;
  uint32_t attribute_count;
};

KernelShape shape_of(const LaunchConfig& config) {
  KernelShape shape{};
  std::copy_n(config.grid, 3, shape.grid);
  std::copy_n(config.block, 3, shape.block);
  shape.dynamic_shared_bytes = config.dynamic_shared_bytes;
  for (uint32_t i = 0; i < config.attribute_count; ++i)
    if (config.attributes[i].id == kClusterDimension) std::copy_n(config.attributes[i].value, 3, shape.cluster);
  return shape;
}

cuda::Result launch(const CallSite& site, cuda::Function function, const KernelShape& shape, cuda::Stream stream,
                    void** arguments, const void* params) {
  const char* name = function != nullptr ? function->name.c_str() : nullptr;
  return driver_call(site, {name, params}, [&](ApiCall& call) {
    if (function == nullptr) return cuda::Result::InvalidHandle;
    Operation operation{cuda::GraphNodeType::Kernel, function, name, function->cubin_crc, shape};
    if (is_value_kernel(operation)) operation.reading = reading_of(arguments);
    return submit(call, stream, operation);
  });
}

// Of a cubin, as the headers of its ELF file tell; 0: it is another kind of image.
size_t cubin_size_bytes(const void* image) {
  Elf64_Ehdr header;
  if (image == nullptr || std::memcmp(image, ELFMAG, SELFMAG) != 0) return 0;
  std::memcpy(&header, image, sizeof header);
  size_t end = std::max(header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr),
                        header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr));
  for (size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, static_cast<const char*>(image) + header.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type != SHT_NOBITS) end = std::max(end, section.sh_offset + section.sh_size);
  }
  return end;
}

}  // namespace

FAKE_CUDA(cuCtxSetCurrent)(cuda::Context context);

FAKE_CUDA(cuModuleLoadData)(cuda::Module* module, const void* image) {
  const ModuleLoadParams params{module, image};
  return driver_call(call_site("cuModuleLoadData"), {nullptr, &params}, [&](ApiCall& call) {
    if (!may_wait()) return cuda::Result::StreamCaptureUnsupported;
    take_time(Knob::ModuleLoadMs);
    *module = owned<cuda::ModuleHandle>().add(std::make_unique<cuda::ModuleHandle>());
    const size_t size_bytes = cubin_size_bytes(image);
    cupti::ModuleData loaded{1, size_bytes, size_bytes != 0 ? static_cast<const char*>(image) : nullptr};
    if (size_bytes != 0) (*module)->cubin_crc = cubin_crc(image, size_bytes);
    notify_resource(cupti::resource::kModuleLoaded, call.context, nullptr, &loaded);
    return cuda::Result::Success;
  });
}

FAKE_CUDA_IS(cuModuleLoadData, CuModuleLoadData);

FAKE_CUDA(cuModuleUnload)(cuda::Module module) {
  return driver_call(call_site("cuModuleUnload"), [&](ApiCall& call) {
    notify_resource(cupti::resource::kModuleUnloadStarting, call.context, nullptr, nullptr);
    return owned<cuda::ModuleHandle>().destroy(module) ? cuda::Result::Success : cuda::Result::InvalidHandle;
  });
}

FAKE_CUDA(cuModuleGetFunction)(cuda::Function* function, cuda::Module module, const char* name) {
  const ModuleGetFunctionParams params{function, module, name};
  return driver_call(call_site("cuModuleGetFunction"), {nullptr, &params}, [&](ApiCall&) {
    *function = function_named(module, name);
    return cuda::Result::Success;
  });
}
FAKE_CUDA_IS(cuModuleGetFunction, CuModuleGetFunction);

// Kernels of libraries are functions here; the first one asked for loads the rest.
FAKE_CUDA(cuKernelGetFunction)(cuda::Function* function, cuda::Function kernel) {
  return driver_call(call_site("cuKernelGetFunction"), [&](ApiCall&) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    *function = kernel;
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuLaunchKernel)(cuda::Function function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                          uint32_t block_y, uint32_t block_z, uint32_t dynamic_shared_bytes, cuda::Stream stream,
                          void** arguments, void** extra) {
  const LaunchParams params{
      function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_shared_bytes, stream, arguments, extra};
  const KernelShape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {}, dynamic_shared_bytes};
  return launch(call_site("cuLaunchKernel"), function, shape, stream, arguments, &params);
}
FAKE_CUDA_IS(cuLaunchKernel, CuLaunchKernel);

FAKE_CUDA(cuLaunchKernelEx)(const LaunchConfig* config, cuda::Function function, void** arguments, void** extra) {
  struct {
    const LaunchConfig* config;
    cuda::Function function;
    void** arguments;
    void** extra;
  } const params{config, function, arguments, extra};
  return launch(call_site("cuLaunchKernelEx"), function, shape_of(*config), config->stream, arguments, &params);
}

FAKE_CUDA(cuLaunchCooperativeKernel)(cuda::Function function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                                     uint32_t block_x, uint32_t block_y, uint32_t block_z,
                                     uint32_t dynamic_shared_bytes, cuda::Stream stream, void** arguments) {
  const LaunchParams params{
      function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_shared_bytes, stream, arguments,
      nullptr};
  const KernelShape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {}, dynamic_shared_bytes};
  return launch(call_site("cuLaunchCooperativeKernel"), function, shape, stream, arguments, &params);
}

// Control of the fake: how long a kernel runs from now on.
BRAGG_FAKE_EXPORT void bragg_fake_set_kernel_ns(const char* name, uint64_t duration_ns) {
  function_named(nullptr, name)->duration_ns.store(duration_ns, std::memory_order_relaxed);
}

BRAGG_FAKE_EXPORT void bragg_fake_set_function_ns(cuda::Function function, uint64_t duration_ns) {
  function->duration_ns.store(duration_ns, std::memory_order_relaxed);
}

// Launches a function `count` times, for callers to whom a call is slow. Returns the first result that is not Success.
BRAGG_FAKE_EXPORT cuda::Result bragg_fake_launch_many(cuda::Function function, cuda::Stream stream, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const cuda::Result result = cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, stream, nullptr, nullptr);
    if (result != cuda::Result::Success) return result;
  }
  return cuda::Result::Success;
}

// The same on a thread of its own, which no interpreter knows, in the caller's context; returns when it has ended.
BRAGG_FAKE_EXPORT cuda::Result bragg_fake_launch_on_thread(cuda::Function function, cuda::Stream stream,
                                                           uint64_t count) {
  cuda::Result result{};
  std::thread([&, context = current_context()] {
    result = cuCtxSetCurrent(context);
    if (result == cuda::Result::Success) result = bragg_fake_launch_many(function, stream, count);
  }).join();
  return result;
}

}  // namespace bragg::fake
