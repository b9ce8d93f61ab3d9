// One process of a host samples a GPU; those of the same user beside it take its readings.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/telemetry/gpu_reading.h"
#include "context/own_descriptor.h"

namespace bragg {

// An abstract socket of the GPU's name: who binds it samples, the others are connected to it. The system takes it back
// from a process that is killed. No call waits.
//
// Threads: that of telemetry.
class SharedGpu {
 public:
  explicit SharedGpu(std::string_view uuid);
  ~SharedGpu() { release(); }
  SharedGpu(const SharedGpu&) = delete;
  SharedGpu& operator=(const SharedGpu&) = delete;

  // Whether this process samples from now on: nobody else does, or whoever does is silent, or is not to be trusted.
  [[nodiscard]] bool claim(int64_t monotonic_ns);
  void publish(const std::vector<TimedReading>& readings);
  // What the sampling process has published since. When that process has ended, the next `claim` may be this one's.
  [[nodiscard]] std::vector<TimedReading> receive(int64_t monotonic_ns);
  // Another process may sample.
  void release();
  // The process that samples; 0: this one.
  [[nodiscard]] pid_t sampler() const { return sampler_; }

  // In a forked child, which must not keep what is its parent's.
  static void close_all_after_fork() noexcept;

 private:
  [[nodiscard]] bool bind_name();
  [[nodiscard]] bool connect_to_sampler();
  [[nodiscard]] bool give_up_sharing();

  std::string name_;
  OwnDescriptor listener_;                // this process samples
  OwnDescriptor connection_;              // another one does
  std::vector<OwnDescriptor> listeners_;  // connected to this process
  pid_t sampler_ = 0;
  int64_t heard_ns_ = 0;
  int failures_ = 0;
  bool is_alone_ = false;  // no sharing is possible
};

}  // namespace bragg
