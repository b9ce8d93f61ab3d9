// How the work of a device was spread over the run: a curve of bounded size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bragg {

// Bins of equal width from the first work on: how long the device worked and waited in each,
// and how much began there. Where the
// run outgrows the bins, each two become one: the whole has 2048 to 4096 of them after its first half second.
// Threads: consumer only.
class ActivityCurve {
 public:
  void began(int64_t start_ns);                   // work; what began before the first counts there
  void worked(int64_t start_ns, int64_t end_ns);  // no two intervals overlap
  // A pause: nothing was launched until `late_until_ns`, then what was did not run yet.
  void waited(int64_t start_ns, int64_t late_until_ns, int64_t end_ns);
  [[nodiscard]] std::string json() const;  // start_ns, bin_ns and the columns of the bins

 private:
  struct Bin {
    int64_t busy_ns = 0;
    uint64_t launches = 0;
    int64_t late_ns = 0;
    int64_t queued_ns = 0;
  };
  [[nodiscard]] size_t bin_of(int64_t time_ns);
  void add(int64_t Bin::* column, int64_t start_ns, int64_t end_ns);

  int64_t start_ns_ = 0;  // 0: nothing began
  int64_t bin_ns_ = 1 << 17;
  std::vector<Bin> bins_;
};

}  // namespace bragg
