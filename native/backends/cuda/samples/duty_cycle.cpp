#include "backends/cuda/samples/duty_cycle.h"

#include <algorithm>

namespace bragg {
namespace {

// Closing a window takes 1.9 ms on an H200: a tenth of it.
constexpr int64_t kWindowNs = 20'000'000;
constexpr int64_t kPatienceNs = 1'000'000'000;  // without a launch
constexpr int64_t kMinGapNs = 20'000'000;
constexpr double kKept = 0.9;  // of a rate, with each window: the last 10 count
// Until the rates tell: short kernels of one stream, which suffer most, take half as long again.
constexpr double kAssumedSlowdown = 0.5;
constexpr uint64_t kWindowsThatTell = 4;
constexpr double kMaxSlowdown = 2;

}  // namespace

void DutyCycle::Rate::add(uint64_t more, int64_t more_ns) {
  launches = launches * kKept + static_cast<double>(more);
  ns = ns * kKept + static_cast<double>(more_ns);
}

bool DutyCycle::is_due(int64_t now_ns, uint64_t launches) {
  const bool has_no_launch = is_open_ && launches == launches_;
  if (has_no_launch && now_ns < opened_ns_ + kPatienceNs) {
    since_ns_ = now_ns;
    due_ns_ = now_ns + kWindowNs;
  }
  return now_ns >= due_ns_;
}

void DutyCycle::leave(Rate& rate, int64_t now_ns, int64_t call_ns, uint64_t launches) {
  if (since_ns_ != 0) rate.add(launches - launches_, now_ns - call_ns - since_ns_);
  since_ns_ = now_ns;
  launches_ = launches;
}

void DutyCycle::opened(int64_t now_ns, int64_t call_ns, uint64_t launches) {
  leave(in_gaps_, now_ns, call_ns, launches);
  // The first call also prepares the device, once: that is not part of the cycle.
  if (first_ns_ == 0) {
    first_ns_ = now_ns;
    call_ns = 0;
  }
  switch_ns_ = static_cast<double>(call_ns);
  is_open_ = true;
  opened_ns_ = now_ns;
  due_ns_ = now_ns + kWindowNs;
}

void DutyCycle::closed(int64_t now_ns, int64_t call_ns, uint64_t launches) {
  const int64_t window_ns = now_ns - call_ns - since_ns_;
  leave(in_windows_, now_ns, call_ns, launches);
  ++windows_;
  open_ns_ += window_ns;
  switch_ns_ += static_cast<double>(call_ns);
  all_switches_ns_ += switch_ns_;
  const double this_ns = switch_ns_ + lost_in_windows(window_ns);
  is_open_ = false;
  const auto paid_ns = [this](double cost_ns) { return static_cast<int64_t>(cost_ns / budget_); };
  due_ns_ =
      std::max({now_ns + kMinGapNs, now_ns + paid_ns(this_ns) - window_ns, first_ns_ + paid_ns(cost_ns() + this_ns)});
}

double DutyCycle::lost_in_windows(int64_t windows_ns) const {
  return static_cast<double>(windows_ns) * slowdown() / (1 + slowdown());
}

// By what is known of the slowdown now, also of the first windows, which were opened on an assumption.
double DutyCycle::cost_ns() const { return all_switches_ns_ + lost_in_windows(open_ns_); }

double DutyCycle::slowdown() const {
  if (windows_ < kWindowsThatTell || in_windows_.ns <= 0 || in_gaps_.ns <= 0) return kAssumedSlowdown;
  const double in_window = in_windows_.launches / in_windows_.ns;
  const double in_gap = in_gaps_.launches / in_gaps_.ns;
  if (in_window <= 0) return in_gap > 0 ? kMaxSlowdown : 0;
  return std::clamp(in_gap / in_window - 1, 0.0, kMaxSlowdown);
}

double DutyCycle::reached(int64_t now_ns) const {
  return first_ns_ != 0 && now_ns > first_ns_ ? cost_ns() / static_cast<double>(now_ns - first_ns_) : 0;
}

}  // namespace bragg
