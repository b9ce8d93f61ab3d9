// The launches of one CUDA context that are counted exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/exact/exact_metrics.h"
#include "backends/cuda/exact/instruction_counter.h"
#include "backends/cuda/exact/range_profiler.h"

namespace bragg {

// Threads: that which counts a launch.
class ExactDevice {
 public:
  ExactDevice(const CuptiLibrary& cupti, const RangeProfilerLibrary& library, cuda::Context context, uint32_t device)
      : cupti_(cupti), context_(context), device_(device), profiler_(library, context, device) {}

  // Which of the counters this chip has, in sets of one pass each, and one for each metric that takes several; or a
  // single one of one pass, and one of what is counted by instruction: takes 0.3 s or more. False: `reason` says why
  // there are none.
  [[nodiscard]] bool open(const std::string& names);
  // From here to `end` the context's launch is counted. `passes`: of the launch's kernel in this set. False: it is not,
  // nor any more with this set; if `reason` says why, with none.
  [[nodiscard]] bool begin(size_t set, RangePasses& passes);
  struct Count {
    RangeProfiler::Counted counted;  // Nothing: others were launched beside it
    std::vector<ExactMetrics::Value> values;
    std::vector<PcSample> instructions;  // none: CUPTI counts the kernel no second time
  };
  // nullopt: it is not counted, as in `begin`.
  [[nodiscard]] std::optional<Count> end();

  [[nodiscard]] cuda::Context context() const { return context_; }
  [[nodiscard]] uint32_t ordinal() const { return device_; }
  [[nodiscard]] size_t sets() const { return sets_.size(); }
  [[nodiscard]] bool has_several_passes(size_t set) const { return sets_[set].passes > 1; }
  [[nodiscard]] bool is_of_instructions(size_t set) const { return sets_[set].is_of_instructions; }
  [[nodiscard]] bool is_given_up(size_t set) const { return sets_[set].is_given_up; }
  [[nodiscard]] size_t set() const { return set_; }  // that was counted last: another one takes longer
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] std::string description_json() const;

 private:
  struct Set {
    ExactMetrics metrics;
    size_t passes;
    bool is_of_instructions = false;
    bool is_given_up = false;
  };
  struct ChosenSet {
    std::vector<Counter> counters;
    size_t passes;
  };

  template <class Predicate>
  void leave_out(std::vector<Counter>& wanted, const Predicate& is_left_out);
  [[nodiscard]] CuptiFailure choose_sets(std::vector<Counter> wanted);
  [[nodiscard]] CuptiFailure choose_of_one_pass(std::vector<Counter>& wanted, size_t most,
                                                std::vector<ChosenSet>& chosen);
  [[nodiscard]] CuptiFailure choose_of_several_passes(std::vector<Counter>& wanted, std::vector<ChosenSet>& chosen);
  [[nodiscard]] CuptiFailure begin_set(size_t number);
  void add_set_of_instructions(const std::vector<std::string>& metrics);
  [[nodiscard]] std::optional<Count> end_instructions();
  [[nodiscard]] const std::vector<std::string>& names_of(const Set& set) const;
  void give_up(Set& set, const std::string& why);
  [[nodiscard]] size_t passes_of(Counter& counter);
  bool refuse(const CuptiFailure& failure);

  const CuptiLibrary& cupti_;
  cuda::Context context_;
  uint32_t device_;
  RangeProfiler profiler_;
  SassMetricsLibrary sass_;
  std::optional<InstructionCounter> instructions_;
  bool has_counted_instructions_ = false;
  std::vector<Set> sets_;
  size_t set_ = 0;
  size_t profiled_sets_ = 1;           // that the profiler has
  std::vector<std::string> left_out_;  // that this chip and release do not count
  std::string reason_;
};

}  // namespace bragg
