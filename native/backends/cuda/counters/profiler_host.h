// CUPTI's profiler host: which counters metrics need, and metrics out of what was counted. No GPU is asked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/driver/profiler_library.h"

namespace bragg {

// Threads: one at a time.
class ProfilerHost {
 public:
  ProfilerHost(const ProfilerHostLibrary& library, cupti::ProfilerType type) : library_(library), type_(type) {}
  ~ProfilerHost() { end(); }
  ProfilerHost(const ProfilerHost&) = delete;
  ProfilerHost& operator=(const ProfilerHost&) = delete;

  // The chip of a device that is in use.
  [[nodiscard]] CuptiFailure look(uint32_t device);
  // How many passes metrics need together. `availability`: what the GPU says of its counters. Takes 0.1 to 0.3 s.
  [[nodiscard]] CuptiFailure choose(const std::vector<uint8_t>& availability, const std::vector<std::string>& metrics,
                                    size_t& passes);
  // Metrics of this chip by CUPTI's names, each as its usual value: a sum, a ratio, a share of the peak.
  [[nodiscard]] std::vector<std::string> known_metrics(const std::vector<uint8_t>& availability);
  // Of the metrics that were chosen last, one value each, from number `row` of an image's samples or ranges.
  [[nodiscard]] CuptiFailure evaluate(const std::vector<uint8_t>& image, size_t row, std::vector<double>& values);

  [[nodiscard]] const std::string& chip() const { return chip_; }
  [[nodiscard]] std::vector<const char*>& names() { return names_; }
  [[nodiscard]] const std::vector<uint8_t>& config() const { return config_; }  // of the metrics that were chosen last

 private:
  [[nodiscard]] CuptiFailure begin(const std::vector<uint8_t>& availability);
  [[nodiscard]] CuptiFailure build_config(size_t& passes);
  void end();

  const ProfilerHostLibrary& library_;
  cupti::ProfilerType type_;
  std::string chip_;
  std::vector<std::string> metrics_;
  std::vector<const char*> names_;  // of `metrics_`
  void* host_ = nullptr;
  std::vector<uint8_t> config_;
};

}  // namespace bragg
