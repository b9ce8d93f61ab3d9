// The instruction sampling of one CUDA context.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/driver/pc_sampling_library.h"
#include "backends/instruction_samples.h"

namespace bragg {

struct SampleCounters {
  uint64_t total = 0;    // seen by the hardware, with the two below
  uint64_t dropped = 0;  // by the hardware
  uint64_t other = 0;    // in kernels that are not the program's
};

struct DrainResult {
  cupti::Result result = cupti::Result::Success;
  bool buffer_full = false;  // the hardware samples no more until it is enabled again
};

// Threads: one at a time, and none that CUPTI calls back.
class PcSampler {
 public:
  struct Settings {
    cupti::CollectionMode mode = cupti::CollectionMode::Continuous;
    uint32_t period = 0;  // 2^n cycles; 0: CUPTI's choice
  };

  PcSampler(const PcSamplingLibrary& library, cuda::Context context);
  ~PcSampler();
  PcSampler(const PcSampler&) = delete;
  PcSampler& operator=(const PcSampler&) = delete;

  // Nothing is sampled before `start`. A `start` that is refused disables the sampler again.
  [[nodiscard]] cupti::Result enable(const Settings& settings);
  [[nodiscard]] cupti::Result start();
  [[nodiscard]] cupti::Result stop();
  // Appends what has come.
  [[nodiscard]] DrainResult drain(std::vector<PcSample>& samples, SampleCounters& counters);
  // Appends what came too late for `drain`.
  [[nodiscard]] cupti::Result disable(std::vector<PcSample>& samples, SampleCounters& counters);

  [[nodiscard]] cuda::Context context() const { return context_; }

 private:
  // What one call of CUPTI fills.
  struct Buffer {
    Buffer(size_t pcs, size_t reasons);
    std::vector<cupti::PcSamples> pcs;
    std::vector<cupti::StallSamples> stalls;
    cupti::SamplingData data{};
    void reset();
    size_t reasons;
  };

  [[nodiscard]] cupti::Result read_reasons();
  [[nodiscard]] cupti::Result configure(const Settings& settings);
  void take(const Buffer& buffer, std::vector<PcSample>& samples) const;
  template <class Call>
  [[nodiscard]] cupti::Result call(Call* function) const;

  bool is_enabled_ = false;
  cupti::CollectionMode mode_ = cupti::CollectionMode::Continuous;

  const PcSamplingLibrary& library_;
  cuda::Context context_;
  std::vector<StringId> reasons_;      // by CUPTI's number; None: not wanted
  std::unique_ptr<Buffer> left_over_;  // CUPTI's between `enable` and `disable`
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace bragg
