// How often the counters of a GPU are sampled.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace bragg {

// Of a core, for all GPUs of the process.
inline constexpr double kCounterBudget = 0.10;

// Threads: that of the counters.
//
// Another interval needs a restart, in which 0.35 s are not sampled. So there is one at most until it is right: what
// decoding a sample was measured to cost says at once which interval is affordable.
class CounterRate {
 public:
  explicit CounterRate(uint64_t interval_ns) : interval_ns_(interval_ns) {}
  // By the budget. `weight`: of decoding, as that of so many plain metrics. `cost_ns`: what decoding a sample of
  // another GPU took; 0: not known.
  CounterRate(size_t weight, size_t gpus, double cost_ns)
      : interval_ns_((weight <= kFewMetrics ? kFewNs : kMetricNs * weight) * gpus),
        costs_by_call_(weight > kFewMetrics),
        cost_ns_(cost_ns) {
    if (gpus > 1) interval_ns_ = interval_ns_ * kSharedPercent / 100;
    interval_ns_ = std::max(interval_ns_, affordable_ns(gpus));
  }

  [[nodiscard]] uint64_t interval_ns() const { return interval_ns_; }
  // What decoding a sample took lately; 0: not known.
  [[nodiscard]] double cost_ns() const { return cost_ns_; }
  // How long to wait before what has come is decoded. That costs by the call, too, several ms with many metrics.
  [[nodiscard]] int64_t nap_ns(size_t gpus) const {
    const int64_t wanted_ns =
        gpus > 1 ? std::min(2 * static_cast<int64_t>(gpus) * kNapNs, kLongestNapNs) : nap_alone_ns();
    return awaited_ns_ == 0 ? wanted_ns : std::min(wanted_ns, static_cast<int64_t>(awaited_ns_ / kNapsInImage));
  }
  // A session begins whose image has room for so many samples. The thread that takes them is
  // away for as long as another GPU begins; what does not fit is lost. 17 KB each.
  [[nodiscard]] uint32_t awaited_samples(size_t gpus) {
    awaited_ns_ = image_ns(gpus);
    return static_cast<uint32_t>(awaited_ns_ / interval_ns_) + kSpareSamples;
  }

  // What was decoded.
  struct Work {
    uint64_t samples = 0, cpu_ns = 0;
  };

  // A session begins, or begins again.
  void begin(int64_t now_ns) {
    taken_at_ns_ = window_start_ns_ = now_ns;
    window_ = {};
  }

  // A look at each GPU.
  struct Turn {
    size_t gpus;       // that are sampled
    bool may_restart;  // one in a turn, and none when one begins: the others' samples wait
  };

  // False: begin again with the interval that this is now. Decides at the end of a window, or as soon as all that it
  // may take is spent.
  [[nodiscard]] bool keep(const Work& work, int64_t now_ns, const Turn& turn) {
    note(work, now_ns);
    if (!turn.may_restart) return true;
    const size_t gpus = turn.gpus;
    const double budget = kCounterBudget / static_cast<double>(gpus);
    const auto since_ns = static_cast<double>(now_ns - window_start_ns_);
    const auto spent_ns = static_cast<double>(window_.cpu_ns);
    if (since_ns < kWindowNs && spent_ns <= budget * kWindowNs) return true;
    const uint64_t before_ns = interval_ns_;
    if (spent_ns > budget * since_ns) interval_ns_ = std::max(interval_ns_, affordable_ns(gpus));
    begin(now_ns);
    has_lost_ = false;
    return interval_ns_ == before_ns;
  }

  // Samples were lost. The interval is not to blame if the thread was away once. False: begin again with the one that
  // this is now.
  [[nodiscard]] bool lose(const Work& work, int64_t now_ns, size_t gpus) {
    const bool was_away = now_ns - taken_at_ns_ > static_cast<int64_t>(awaited_ns_);
    note(work, now_ns);
    const uint64_t least_ns = !was_away || has_lost_ ? 2 * interval_ns_ : interval_ns_;
    const uint64_t before_ns = interval_ns_;
    interval_ns_ = std::max(interval_ns_, std::min(std::max(least_ns, affordable_ns(gpus)), kLongestNs));
    has_lost_ = true;
    return interval_ns_ == before_ns;
  }

 private:
  // Decoding a sample takes 5 us with 2 metrics and 40 to 86 with 7 to 9 on an H200, 140 with a throughput.
  static constexpr uint64_t kFewMetrics = 3, kFewNs = 100'000, kMetricNs = 120'000;
  static constexpr int64_t kNapNs = 50'000'000, kLongestNapNs = 400'000'000;
  static constexpr uint64_t kSharedPercent = 120;  // of two GPUs a sample takes 96 to 103 us, not 88
  static constexpr uint64_t kLongestNs = 10'000'000;
  static constexpr double kWindowNs = 1e9;
  static constexpr double kMargin = 1.2;       // of one window to another
  static constexpr uint64_t kNapsInImage = 3;  // the thread may be late
  [[nodiscard]] int64_t nap_alone_ns() const { return costs_by_call_ ? kLongestNapNs / 2 : kNapNs; }
  [[nodiscard]] uint64_t image_ns(size_t gpus) const {
    return kNapsInImage * static_cast<uint64_t>(gpus > 1 ? kLongestNapNs : nap_alone_ns());
  }
  static constexpr uint32_t kSpareSamples = 64;

  void note(const Work& work, int64_t now_ns) {
    taken_at_ns_ = now_ns;
    window_.samples += work.samples;
    window_.cpu_ns += work.cpu_ns;
    if (window_.samples != 0) cost_ns_ = static_cast<double>(window_.cpu_ns) / static_cast<double>(window_.samples);
  }
  [[nodiscard]] uint64_t affordable_ns(size_t gpus) const {
    const double needed_ns = kMargin * cost_ns_ * static_cast<double>(gpus) / kCounterBudget;
    return static_cast<uint64_t>(std::min(needed_ns, static_cast<double>(kLongestNs)));
  }

  uint64_t interval_ns_;
  bool costs_by_call_ = false;
  double cost_ns_ = 0;
  uint64_t awaited_ns_ = 0;  // what the session's image holds: it may have begun while there was one GPU
  int64_t taken_at_ns_ = 0, window_start_ns_ = 0;
  Work window_;
  bool has_lost_ = false;  // since a window was right
};

}  // namespace bragg
