// Counts by instruction: kernels of a context that are patched at their first launch in a range.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/driver/cupti_sass_metrics.h"
#include "link.h"

namespace bragg::fake {

// Each launch of b blocks executes instruction n of its kernel b * (n + 1) times, by all 32 threads of a warp, of which
// half are predicated off at odd instructions. Where kernels have records, all counts are 0; where such records never
// were wanted, a kernel is counted once. Threads: any. What would hang or break the program ends it, and says so.
class SassMetrics {
 public:
  static constexpr uint32_t kInstructions = 16;

  [[nodiscard]] static cupti::Result properties(cupti::SassMetricParams& params);
  [[nodiscard]] cupti::Result configure(const cupti::SassConfigParams& params);
  [[nodiscard]] cupti::Result unset(uint32_t device);
  [[nodiscard]] cupti::Result enable(const cupti::SassEnableParams& params);
  [[nodiscard]] cupti::Result disable(cupti::SassDisableParams& params);
  [[nodiscard]] cupti::Result data_properties(cupti::SassDataParams& params);
  [[nodiscard]] cupti::Result flush(cupti::SassFlushParams& params);
  void executed(const Execution& execution);
  void called(const ApiCall& call);     // at its end
  [[nodiscard]] bool admits_records();  // of kernels, which are to be wanted

 private:
  struct Place {
    uint64_t crc;
    std::string function;
    uint32_t pc_offset;
    auto operator<=>(const Place&) const = default;
  };
  using Counts = std::map<Place, std::vector<uint64_t>>;  // by metric

  [[nodiscard]] Counts* of(cuda::Context context);
  void demand_no_capture(const char* call) const;

  std::mutex mutex_;
  std::map<uint32_t, std::vector<uint64_t>> configured_;     // metrics by device
  std::map<uint32_t, std::pair<uint32_t, Counts>> enabled_;  // device and counts, by context
  std::set<Place> counted_;                                  // kernels
  bool wanted_records_ = false;
  bool has_unset_ = false;
  std::atomic<int> captures_{0};
};

[[nodiscard]] SassMetrics& sass_metrics();

}  // namespace bragg::fake
