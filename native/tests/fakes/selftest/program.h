// The fake driver as a program uses it: every call goes through dlsym.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <string>

#include "backends/cuda/driver/cuda_abi.h"
#include "check.h"

namespace bragg::fake::selftest {

// The fakes lie beside the executable.
[[nodiscard]] std::string fakes_directory();
// Loads a fake; ends the process if that fails.
[[nodiscard]] void* load(const std::string& file_name);

class Program {
 public:
  // Loads libcuda.so.1 and, with `initialize`, makes device 0 current.
  explicit Program(bool initialize = true);

  template <class... Args>
  cuda::Result call(const char* symbol, Args... args) const {
    auto* function = reinterpret_cast<cuda::Result (*)(Args...)>(dlsym(library_, symbol));
    if (CHECK(function != nullptr)) return function(args...);
    return cuda::Result::NotFound;
  }
  // A call that must succeed.
  template <class... Args>
  void must(const char* symbol, Args... args) const {
    const cuda::Result result = call(symbol, args...);
    if (result != cuda::Result::Success) test::fail(symbol, 0, "result " + test::show(result));
  }

  [[nodiscard]] cuda::Context use_device(int32_t ordinal) const;
  [[nodiscard]] cuda::Stream stream() const;
  [[nodiscard]] cuda::Function function(const char* name, uint64_t duration_ns = 0) const;
  void launch(cuda::Function function, cuda::Stream stream = nullptr) const;
  void copy_to_device(size_t size_bytes, cuda::Stream stream) const;
  void set(size_t size_bytes, cuda::Stream stream) const;
  void synchronize() const { must("cuCtxSynchronize"); }
  void set_knob(const char* name, int64_t value) const;

  [[nodiscard]] cuda::GraphExec capture_three_nodes(cuda::Stream stream, cuda::Graph& graph) const;

 private:
  void* library_;
};

}  // namespace bragg::fake::selftest
