// One GPU whose instructions are sampled.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/samples/pc_sampler.h"
#include "backends/cuda/samples/sampler_lock.h"

namespace bragg {

// Threads: one at a time, and none that CUPTI calls back. Launches of other threads are kept apart from the calls that
// must not meet them; while one does not come out of a launch, such a call is left for the next time.
class SampledDevice {
 public:
  struct Settings {
    cupti::CollectionMode mode;
    uint32_t period;  // 2^n cycles
  };

  SampledDevice(const CuptiLibrary& cupti, const PcSamplingLibrary& library, cuda::Context context, uint32_t ordinal,
                const Settings& settings);

  [[nodiscard]] cuda::Context context() const { return sampler_.context(); }
  [[nodiscard]] uint32_t ordinal() const { return ordinal_; }
  [[nodiscard]] bool is_running() const { return is_running_; }
  [[nodiscard]] bool is_refused() const { return !reason_.empty(); }

  // The first time this takes a third of a second. Nothing happens if it runs, or cannot be sampled.
  void start();
  void stop(std::vector<PcSample>& samples);
  // Appends what has come. When the hardware's buffer was full, it begins anew with a longer period.
  void drain(std::vector<PcSample>& samples);
  // The last samples come when the hardware stops, and only then.
  void end(std::vector<PcSample>& samples);

  [[nodiscard]] std::string description_json() const;

 private:
  [[nodiscard]] bool enable();
  void restart(std::vector<PcSample>& samples);
  [[nodiscard]] std::string other_user();  // of the GPU's counters; "": nobody
  void fail(cupti::Result result);
  void refuse(std::string reason);
  // False: not called, because a thread launches.
  template <class Call>
  bool while_nothing_launches(Call&& call);

  const CuptiLibrary& cupti_;
  const PcSamplingLibrary& library_;
  PcSampler sampler_;
  SamplerLock lock_;
  uint32_t ordinal_;
  Settings settings_;
  bool is_enabled_ = false;
  bool is_running_ = false;
  bool has_begun_ = false;
  uint32_t restarts_ = 0;  // the buffer was full
  int64_t enabling_ns_ = 0;
  std::string reason_;  // why it is not sampled
  SampleCounters counters_;
};

}  // namespace bragg
