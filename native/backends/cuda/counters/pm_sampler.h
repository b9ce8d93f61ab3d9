// CUPTI's PM sampling of one GPU: the calls in their order.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/counters/profiler_host.h"
#include "backends/cuda/driver/profiler_library.h"

namespace bragg {

struct PmSample {
  uint64_t start_ns;  // CLOCK_REALTIME, as records of kernels
  uint64_t end_ns;
  std::span<const double> values;  // as the metrics were named
};

// Threads: one.
class PmSampler {
 public:
  struct Decoded {
    cupti::Result result = cupti::Result::Success;
    bool is_overflown = false;   // the hardware's buffer was full: nothing comes from this session any more
    bool is_image_full = false;  // what came after it is lost
    bool is_end = false;         // there are no more records
  };
  using Failure = CuptiFailure;

  PmSampler(const PmSamplingLibrary& library, uint32_t device)
      : library_(library), device_(device), host_(library.host, cupti::ProfilerType::PmSampling) {}
  ~PmSampler() { close(); }
  PmSampler(const PmSampler&) = delete;
  PmSampler& operator=(const PmSampler&) = delete;

  // The chip, and whether nobody else has its counters: asked for before anything is enabled, since Enable succeeds
  // although another process has them.
  [[nodiscard]] Failure look();
  // How many passes metrics need together; only those of one can be sampled.
  [[nodiscard]] Failure choose(const std::vector<std::string>& metrics, size_t& passes) {
    return host_.choose(availability_, metrics, passes);
  }
  // Metrics of this chip by CUPTI's names, each as its usual value: a sum, a ratio, a share of the peak.
  [[nodiscard]] std::vector<std::string> known_metrics() { return host_.known_metrics(availability_); }
  // Samples the metrics that were chosen last, of which `max_samples` are decoded at once.
  [[nodiscard]] Failure open(uint64_t interval_ns, uint32_t max_samples);
  [[nodiscard]] Failure stop();
  [[nodiscard]] Decoded decode(const std::function<void(const PmSample&)>& take);
  void close();

  [[nodiscard]] const std::string& chip() const { return host_.chip(); }
  [[nodiscard]] bool is_open() const { return sampler_ != nullptr; }
  // The trigger of these chips counts cycles of a clock instead of ns.
  [[nodiscard]] bool counts_cycles() const { return chip().starts_with("TU") || chip() == "GA100"; }

 private:
  [[nodiscard]] Failure start(uint64_t interval_ns, uint32_t max_samples);
  [[nodiscard]] Failure reset_image();

  const PmSamplingLibrary& library_;
  uint32_t device_;
  std::vector<uint8_t> availability_;  // of the host's, which ends first
  ProfilerHost host_;                  // CUPTI keeps a pointer to its configuration until the sampler is disabled
  void* sampler_ = nullptr;
  std::vector<uint8_t> image_;
};

}  // namespace bragg
