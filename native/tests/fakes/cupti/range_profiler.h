// Launches of a context that are counted one by one: one profiler a context.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "backends/cuda/driver/cupti_range_profiler.h"
#include "cupti/pm_sampling.h"
#include "link.h"

namespace bragg::fake {

// Threads: any. What would break the program ends it, and says so.
class RangeProfiler {
 public:
  [[nodiscard]] cupti::Result enable(cupti::RangeEnableParams& params);
  [[nodiscard]] cupti::Result configure(const cupti::RangeConfigParams& params);
  [[nodiscard]] cupti::Result start(void* profiler);
  [[nodiscard]] cupti::Result stop(cupti::RangeStopParams& params);
  [[nodiscard]] cupti::Result disable(void* profiler);
  [[nodiscard]] cupti::Result data_size(cupti::RangeDataSizeParams& params);
  [[nodiscard]] cupti::Result initialize_image(const cupti::RangeImageParams& params);
  [[nodiscard]] cupti::Result decode(cupti::RangeDecodeParams& params);
  [[nodiscard]] bool executed(const Execution& execution);  // true: it was counted
  void called(const ApiCall& call);                         // at its end

 private:
  struct Session {
    uint32_t context = 0;
    std::vector<uint8_t> config;
    uint8_t* image = nullptr;
    uint64_t max_ranges = 0;
    size_t pass = 0;
    bool is_running = false;
    std::vector<PmImage::Sample> ranges;
  };
  [[nodiscard]] Session* of(void* profiler);
  void demand_no_capture(const char* call) const;
  static void demand_pass_of(const PmImage& image, size_t pass);

  std::mutex mutex_;
  std::map<void*, Session> sessions_;
  std::atomic<int> captures_{0};
};

[[nodiscard]] RangeProfiler& range_profiler();

}  // namespace bragg::fake
