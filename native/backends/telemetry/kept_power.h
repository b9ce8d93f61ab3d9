// Power that the driver samples by itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/telemetry/gpu_reading.h"
#include "backends/telemetry/nvml_library.h"

namespace bragg {

// An H100's driver keeps 119 samples, one in 20 ms, each of the moment: what it calls the power of now changes every
// 100 ms. The call that brings them takes 0.45 ms of CPU time in a virtual machine, where one for a single value takes
// 70 us: a call in 2 s costs a fifteenth of 50 calls a second.
//
// Threads: that of telemetry.
class KeptPower {
 public:
  // What has been kept for at most so long.
  KeptPower(const NvmlLibrary& library, nvml::Device device, std::chrono::microseconds age);

  // Why there is none; "": there is.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] bool is_due(int64_t monotonic_ns) const { return monotonic_ns - taken_ns_ >= interval_ns_; }
  // Appends those that have come since, by ascending time.
  void take(int64_t monotonic_ns, std::vector<TimedReading>& readings);
  // Those until then are known, or not wanted.
  void skip_until(int64_t time_ns);

 private:
  const NvmlLibrary& library_;
  nvml::Device device_;
  std::string reason_;
  std::vector<nvml::Sample> buffer_;
  uint64_t seen_us_;  // of the system's clock
  int64_t taken_ns_ = 0, interval_ns_;
};

}  // namespace bragg
