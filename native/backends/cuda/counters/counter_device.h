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
//
// Counters that do not go together in one pass make sets, which take turns: each is sampled for some seconds.
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

  // What decoding a sample takes; 0: not known.
  [[nodiscard]] double cost_ns() const { return sets_.empty() ? 0 : sets_.front()->rate.cost_ns(); }
  // How long to wait before the next `drain`.
  [[nodiscard]] int64_t nap_ns(size_t gpus) const { return sets_.empty() ? 0 : sets_[current_]->rate.nap_ns(gpus); }
  [[nodiscard]] uint32_t ordinal() const { return ordinal_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] std::vector<Counter> counters() const;  // of all sets
  [[nodiscard]] std::string description_json() const;

 private:
  struct Counts {
    uint64_t irregular = 0, not_a_number = 0;  // irregular: the first, and those without a time
    uint64_t gaps = 0, gap_ns = 0, overflows = 0, images_full = 0, restarts = 0, cpu_ns = 0;
  };

  struct Set {
    Set(const PmSamplingLibrary& library, uint32_t ordinal, uint64_t interval_ns)
        : sampler(library, ordinal), rate(interval_ns) {}

    std::vector<Counter> counters;  // that this chip has in one pass, each with one alternative
    uint32_t first = 0;             // of them, among the counters of all sets
    PmSampler sampler;
    CounterRate rate;
    uint64_t samples = 0, sampled_ns = 0;
  };

  [[nodiscard]] CuptiFailure add_set(const std::vector<Counter>& wanted, std::vector<Counter>& others);
  [[nodiscard]] Set& current() { return *sets_[current_]; }
  void start(size_t gpus);
  void restart(CounterRate::Turn& turn);
  [[nodiscard]] bool has_times_again(const PmSampler::Decoded& decoded, const CounterRate::Work& work, bool is_timed);
  void begin_next_turn(CounterRate::Turn& turn);
  PmSampler::Decoded decode(std::vector<CounterPoint>& points, CounterRate::Work& work);
  void take(const PmSample& sample, std::vector<CounterPoint>& points);
  void refuse(const PmSampler::Failure& failure);
  [[nodiscard]] static std::string set_json(const std::unique_ptr<Set>& set);

  const CuptiLibrary& cupti_;
  const PmSamplingLibrary& library_;
  uint32_t ordinal_;
  Settings settings_;
  std::string chip_;
  std::vector<std::unique_ptr<Set>> sets_;
  std::vector<std::string> left_out_;  // tracks
  size_t current_ = 0;                 // of the sets
  uint64_t turns_ = 0;                 // that have ended
  int64_t turn_end_ns_ = 0;
  uint64_t last_end_ns_ = 0;      // of a sample; 0: the next one is the first
  uint64_t started_ns_ = 0;       // the session, CLOCK_REALTIME as samples
  uint64_t restarted_at_ns_ = 0;  // where the samples before a restart end, until there are others; 0: there are
  int untimed_decodes_ = 0;       // that of a full image, and since then; 0: samples have times
  std::string reason_;
  Counts counts_;
};

}  // namespace bragg
