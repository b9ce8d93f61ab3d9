// One process at a time samples the instructions of a GPU.
#pragma once

#include <sys/types.h>

#include <string>

#include "context/own_descriptor.h"

namespace bragg {

// CUPTI refuses a second sampler only at its start. It then frees what launches that wait for the start still use, and
// their process crashes (CUPTI 13.0, H100). So processes agree beforehand.
//
// The lock is a name in Linux's abstract socket namespace: no file is left behind, and the kernel frees it when its
// process ends, however that happens. Processes in another network namespace do not see it.
class SamplerLock {
 public:
  SamplerLock() = default;
  ~SamplerLock() { release(); }
  SamplerLock(const SamplerLock&) = delete;
  SamplerLock& operator=(const SamplerLock&) = delete;

  // The process that has it: this one from now on, unless another one has; 0 if that one does not tell. `uuid`: of the
  // GPU; "" is nobody's, and locks nothing.
  [[nodiscard]] pid_t acquire(const std::string& uuid);
  void release();

 private:
  OwnDescriptor socket_;
};

}  // namespace bragg
