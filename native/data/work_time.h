// How long the program was at work, as far as was recorded: from the first to the last event, without pauses of more
// than 10 s. Imports before the first launch, scope or operator are not work, nor is what follows the last one.
#pragma once

#include <algorithm>
#include <cstdint>

namespace bragg {

class WorkTime {
 public:
  // Something ended that had begun at `start_ns`. Roughly in order.
  void cover(int64_t start_ns, int64_t end_ns) {
    if (until_ns_ == 0 || start_ns - until_ns_ > kPauseNs) {
      total_ns_ += static_cast<uint64_t>(std::max<int64_t>(end_ns - start_ns, 0));
    } else {
      total_ns_ += static_cast<uint64_t>(std::max<int64_t>(end_ns - until_ns_, 0));
    }
    until_ns_ = std::max(until_ns_, end_ns);
    if (first_ns_ == 0) first_ns_ = start_ns;
    if (start_ns >= first_ns_) return;  // else a scope in which the first event happened
    total_ns_ += static_cast<uint64_t>(first_ns_ - start_ns);
    first_ns_ = start_ns;
  }
  [[nodiscard]] uint64_t total_ns() const { return total_ns_; }

 private:
  static constexpr int64_t kPauseNs = 10'000'000'000;
  int64_t first_ns_ = 0;
  int64_t until_ns_ = 0;
  uint64_t total_ns_ = 0;
};

}  // namespace bragg
