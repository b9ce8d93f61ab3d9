// CUPTI's range profiler around one launch of a CUDA context: the calls in their order.
//
// Each kernel is a range, and counters that fit one pass need no replay, so the launch runs once, as it would. With
// replay of kernels (CUPTI 13.0 on an H200) no record of the thread's launches comes any more. What takes several
// passes is counted as several sets, each by launches of its own; a metric that takes several by itself has a set of
// several passes, each of which is one launch of the same kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/counters/profiler_host.h"

namespace bragg {

// What is counted of a set of several passes: CUPTI adds a pass to the image with each launch.
struct RangePasses {
  std::vector<uint8_t> image;
  size_t next = 0;
};

// Threads: one at a time; `begin` and `end` on the thread that launches, within the driver's call.
class RangeProfiler {
 public:
  RangeProfiler(const RangeProfilerLibrary& library, cuda::Context context, uint32_t device)
      : library_(library), context_(context), device_(device) {
    hosts_.push_back(std::make_unique<ProfilerHost>(library_.host, cupti::ProfilerType::Range));
  }
  ~RangeProfiler() { close(); }
  RangeProfiler(const RangeProfiler&) = delete;
  RangeProfiler& operator=(const RangeProfiler&) = delete;

  // The chip and its counters.
  [[nodiscard]] CuptiFailure look();
  // The metrics of the last set, and how many passes they need together.
  [[nodiscard]] CuptiFailure choose(const std::vector<std::string>& metrics, size_t& passes) {
    return hosts_.back()->choose(availability_, metrics, passes);
  }
  // One more set. The first one is there.
  [[nodiscard]] CuptiFailure add_set();
  // What the context launches from now on is counted. Takes 0.15 s with another set than before, and with each pass of
  // several, else some ms. `passes`: of a set of several, those that were counted of this kernel; else nullptr.
  [[nodiscard]] CuptiFailure begin(size_t set, RangePasses* passes);
  enum class Counted { Nothing, Pass, All };  // not one kernel; one pass, but not the last; all that was chosen
  // Waits for the launch. `values`: of the metrics, as chosen, once all is counted.
  [[nodiscard]] CuptiFailure end(std::vector<double>& values, Counted& counted);
  void close();

  [[nodiscard]] const std::string& chip() const { return hosts_.front()->chip(); }
  [[nodiscard]] size_t set() const { return set_; }  // that was counted last

 private:
  [[nodiscard]] std::vector<uint8_t>& image() { return passes_ != nullptr ? passes_->image : image_; }
  [[nodiscard]] CuptiFailure open();
  [[nodiscard]] CuptiFailure configure();
  [[nodiscard]] CuptiFailure new_image();
  [[nodiscard]] CuptiFailure reset_image();
  [[nodiscard]] CuptiFailure decode(const cupti::RangeStopParams& stopped, std::vector<double>& values,
                                    Counted& counted);

  const RangeProfilerLibrary& library_;
  cuda::Context context_;
  uint32_t device_;
  std::vector<uint8_t> availability_;  // of the hosts, which end first
  // A set each: CUPTI may keep a pointer to its configuration until the profiler is disabled.
  std::vector<std::unique_ptr<ProfilerHost>> hosts_;
  size_t set_ = 0;
  void* profiler_ = nullptr;
  std::vector<uint8_t> image_;  // of sets of one pass
  RangePasses* passes_ = nullptr;
};

}  // namespace bragg
