#include "selftest/program.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace bragg::fake::selftest {

std::string fakes_directory() { return std::filesystem::read_symlink("/proc/self/exe").parent_path().string(); }

void* load(const std::string& file_name) {
  void* library = dlopen((fakes_directory() + "/" + file_name).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  std::fprintf(stderr, "%s\n", dlerror());
  std::exit(2);
}

Program::Program(bool initialize) : library_(load("libcuda.so.1")) {
  if (!initialize) return;
  must("cuInit", 0u);
  (void)use_device(0);
}

cuda::Context Program::use_device(int32_t ordinal) const {
  cuda::Context context = nullptr;
  must("cuDevicePrimaryCtxRetain", &context, ordinal);
  must("cuCtxSetCurrent", context);
  return context;
}

cuda::Stream Program::stream() const {
  cuda::Stream stream = nullptr;
  must("cuStreamCreate", &stream, 1u);
  return stream;
}

cuda::Function Program::function(const char* name, uint64_t duration_ns) const {
  cuda::Function function = nullptr;
  must("cuModuleGetFunction", &function, static_cast<cuda::Module>(nullptr), name);
  if (duration_ns != 0)
    reinterpret_cast<void (*)(const char*, uint64_t)>(dlsym(library_, "bragg_fake_set_kernel_ns"))(name, duration_ns);
  return function;
}

void Program::launch(cuda::Function function, cuda::Stream stream) const {
  must("cuLaunchKernel", function, 4u, 2u, 1u, 128u, 1u, 1u, 64u, stream, static_cast<void**>(nullptr),
       static_cast<void**>(nullptr));
}

void Program::copy_to_device(size_t size_bytes, cuda::Stream stream) const {
  must("cuMemcpyHtoDAsync_v2", cuda::DevicePointer{0}, static_cast<const void*>(nullptr), size_bytes, stream);
}

void Program::set(size_t size_bytes, cuda::Stream stream) const {
  must("cuMemsetD8Async", cuda::DevicePointer{0}, uint8_t{7}, size_bytes, stream);
}

void Program::set_knob(const char* name, int64_t value) const {
  CHECK(reinterpret_cast<bool (*)(const char*, int64_t)>(dlsym(library_, "bragg_fake_set"))(name, value));
}

cuda::GraphExec Program::capture_three_nodes(cuda::Stream stream, cuda::Graph& graph) const {
  must("cuStreamBeginCapture_v2", stream, 0u);
  launch(function("first"), stream);
  copy_to_device(4096, stream);
  launch(function("third"), stream);
  must("cuStreamEndCapture", stream, &graph);
  cuda::GraphExec exec = nullptr;
  must("cuGraphInstantiateWithFlags", &exec, graph, uint64_t{0});
  return exec;
}

}  // namespace bragg::fake::selftest
