// The counters of one GPU: which of them, how often, and what of it was lost.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/counters/counter_choice.h"
#include "backends/cuda/counters/counter_metrics.h"
#include "backends/cuda/counters/counter_rate.h"
#include "backends/cuda/counters/pm_sampler.h"

namespace bragg {

struct CounterPoint {
  uint32_t device;
  uint32_t counter;  // of `CounterDevice::counters`
  int64_t time_ns;   // where the sample begins
  double value;
};

// Threads: that of the counters.
class CounterDevice {
 public:
  struct Settings {
    std::vector<Counter> wanted;
    uint64_t interval_ns = 0;  // 0: by the budget
  };

  CounterDevice(const CuptiLibrary& cupti, const PmSamplingLibrary& library, uint32_t ordinal,
                const Settings& settings);

  // Finds out what it can count, which takes up to a second. Refused: `reason` says why.
  void prepare();
  // Begins to sample, which takes 0.3 s. `gpus`: that are sampled, this one too. `cost_ns`: what decoding a sample of
  // another one took; 0: not known.
  void open(size_t gpus, double cost_ns);
  // Takes what the hardware has, and samples less often if that takes more than the budget.
  void drain(std::vector<CounterPoint>& points, CounterRate::Turn& turn);
  // Takes the last of it.
  void end(std::vector<CounterPoint>& points);

  [[nodiscard]] double cost_ns() const { return rate_.cost_ns(); }
  [[nodiscard]] uint32_t ordinal() const { return ordinal_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] const std::vector<Counter>& counters() const { return counters_; }
  [[nodiscard]] std::string description_json() const;

 private:
  struct Counts {
    uint64_t samples = 0, irregular = 0, not_a_number = 0;  // irregular: the first, and those without a time
    uint64_t gaps = 0, gap_ns = 0, overflows = 0, images_full = 0, restarts = 0, cpu_ns = 0;
  };

  void start(size_t gpus);
  void restart(CounterRate::Turn& turn);
  PmSampler::Decoded decode(std::vector<CounterPoint>& points, CounterRate::Work& work);
  void take(const PmSample& sample, std::vector<CounterPoint>& points);
  void refuse(const PmSampler::Failure& failure);

  const CuptiLibrary& cupti_;
  uint32_t ordinal_;
  std::vector<Counter> wanted_;
  std::vector<Counter> counters_;  // of `wanted_` those that this chip has in one pass, each with one alternative
  PmSampler sampler_;
  CounterRate rate_;
  bool is_by_budget_;
  uint64_t last_end_ns_ = 0;      // of a sample; 0: the next one is the first
  uint64_t started_ns_ = 0;       // the session, CLOCK_REALTIME as samples
  uint64_t restarted_at_ns_ = 0;  // where the samples before a restart end, until there are others; 0: there are
  std::string reason_;
  Counts counts_;
};

}  // namespace bragg
