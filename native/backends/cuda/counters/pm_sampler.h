// CUPTI's PM sampling of one GPU: the calls in their order.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/driver/pm_sampling_library.h"

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
  // A call that failed.
  struct Failure {
    const char* call = "";  // "": none
    cupti::Result result = cupti::Result::Success;
    explicit operator bool() const { return *call != 0; }
  };

  PmSampler(const PmSamplingLibrary& library, uint32_t device) : library_(library), device_(device) {}
  ~PmSampler() { close(); }
  PmSampler(const PmSampler&) = delete;
  PmSampler& operator=(const PmSampler&) = delete;

  // The chip, and whether nobody else has its counters: asked for before anything is enabled, since Enable succeeds
  // although another process has them.
  [[nodiscard]] Failure look();
  // How many passes metrics need together; only those of one can be sampled.
  [[nodiscard]] Failure choose(const std::vector<std::string>& metrics, size_t& passes);
  // Metrics of this chip by CUPTI's names, each as its usual value: a sum, a ratio, a share of the peak.
  [[nodiscard]] std::vector<std::string> known_metrics();
  // Samples the metrics that were chosen last, of which `max_samples` are decoded at once.
  [[nodiscard]] Failure open(uint64_t interval_ns, uint32_t max_samples);
  [[nodiscard]] Failure stop();
  [[nodiscard]] Decoded decode(const std::function<void(const PmSample&)>& take);
  void close();

  [[nodiscard]] const std::string& chip() const { return chip_; }
  [[nodiscard]] bool is_open() const { return sampler_ != nullptr; }
  // The trigger of these chips counts cycles of a clock instead of ns.
  [[nodiscard]] bool counts_cycles() const { return chip_.starts_with("TU") || chip_ == "GA100"; }

 private:
  [[nodiscard]] Failure begin_host();
  [[nodiscard]] Failure build_config(size_t& passes);
  [[nodiscard]] Failure start(uint64_t interval_ns, uint32_t max_samples);
  [[nodiscard]] Failure reset_image();
  void end_host();

  const PmSamplingLibrary& library_;
  uint32_t device_;
  std::string chip_;
  std::vector<uint8_t> availability_;
  std::vector<std::string> metrics_;
  std::vector<const char*> names_;  // of `metrics_`
  void* host_ = nullptr;
  std::vector<uint8_t> config_;  // CUPTI keeps a pointer until the sampler is disabled
  void* sampler_ = nullptr;
  std::vector<uint8_t> image_;
};

}  // namespace bragg
