// Steps of the system's clock. CUPTI stamps its records with that one, the recorder its own with one that nobody sets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bragg {

// Threads: consumer only.
class ClockSteps {
 public:
  // A smaller change within one poll (20 ms) comes from a clock that is being adjusted: it is followed, and is not a
  // step. 500 ppm, the most that the kernel corrects, are 10 us.
  static constexpr int64_t kLeastStepNs = 1'000'000;
  static constexpr size_t kMostKept = 64;
  // Records of before a step come this much later at most; most within a flush, 0.5 s.
  static constexpr int64_t kLatestNs = 60'000'000'000;

  // `ahead_ns`: the system's clock by now, over the recorder's.
  void note(int64_t ahead_ns, int64_t now_ns);
  // A record's interval by the recorder's clock. Nothing says which side of a step it is on: it is taken for the one on
  // which it ended last, but not after now.
  void correct(int64_t& start_ns, int64_t& end_ns, int64_t now_ns) const;

  [[nodiscard]] bool empty() const { return steps_.empty(); }
  // JSON array of the steps since `from_ns`, as the recorder's clock has it; empty: there were none.
  [[nodiscard]] std::string json(int64_t from_ns) const;

 private:
  struct Step {
    int64_t at_ns;
    int64_t by_ns;
  };
  int64_t ahead_ns_ = 0;
  std::vector<Step> steps_;  // the latest
};

}  // namespace bragg
