// The CUDA driver of this process, if some part of the program has loaded it.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/driver/cuda_abi.h"
#include "context/loaded_library.h"

namespace bragg {

struct CudaDevice {
  std::string name;
  int32_t compute_capability_major = 0;
  int32_t compute_capability_minor = 0;
  int32_t multiprocessors = 0;
  int32_t clock_khz = 0;
  int32_t memory_clock_khz = 0;
  int32_t memory_bus_bits = 0;
};

class CudaDriver {
 public:
  // Loads the driver and initialises it: in a process that is not recorded. Returns why it cannot, or "".
  [[nodiscard]] static std::string initialize();

  // Never loads libcuda and never initialises it.
  [[nodiscard]] static CudaDriver mapped();

  [[nodiscard]] bool is_initialized() const;
  [[nodiscard]] int32_t version() const;  // 1000 * major + 10 * minor; 0: not known
  // Devices that have a primary context: before, no program but one that makes others has launched anything.
  [[nodiscard]] uint32_t n_primary_contexts() const;
  [[nodiscard]] std::vector<CudaDevice> devices() const;
  [[nodiscard]] std::string uuid(uint32_t ordinal) const;  // 32 hexadecimal digits; "": not known
  [[nodiscard]] uint32_t current_device() const;           // of this thread's context; 0xFFFFFFFF: it has none

 private:
  LoadedLibrary library_;
};

}  // namespace bragg
