// How the work of a device was spread over the run: a curve of bounded size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/idle_fold.h"

namespace bragg {

// Bins of equal width from the first work on: how long the device worked and waited in each, and how much began
// there. Where the run outgrows the bins, each two become one: the whole has 2048 to 4096 of them after its first half
// second. Threads: consumer only.
class ActivityCurve {
 public:
  void began(int64_t start_ns) { ++bins_[bin_of(start_ns)].launches; }  // what began before the first counts there
  void worked(int64_t start_ns, int64_t end_ns);                        // no two intervals overlap
  void waited(const Pause& pause);
  [[nodiscard]] std::string json() const;  // start_ns, bin_ns and the columns of the bins

 private:
  struct Bin {
    int64_t busy_ns = 0;
    uint64_t launches = 0;
    int64_t late_ns = 0;
    int64_t queued_ns = 0;  // launched and not begun, of which:
    int64_t full_queue_ns = 0;
    int64_t waited_ns = 0;
  };
  [[nodiscard]] size_t bin_of(int64_t time_ns) {
    const auto bin = static_cast<size_t>(std::max<int64_t>(time_ns - start_ns_, 0) >> bin_bits_);
    return bin < bins_.size() ? bin : new_bin_of(time_ns);
  }
  [[nodiscard]] size_t new_bin_of(int64_t time_ns);
  void add(int64_t Bin::* column, int64_t start_ns, int64_t end_ns);

  int64_t start_ns_ = 0;  // 0: nothing began
  int bin_bits_ = 17;     // a bin is 2^17 ns wide
  std::vector<Bin> bins_;
};

}  // namespace bragg
