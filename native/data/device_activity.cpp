#include "data/device_activity.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "data/json.h"

namespace bragg {
namespace {

constexpr size_t kSettleEvery = 1u << 16;
constexpr size_t kMaxWaiting = 1u << 19;        // 20 MB a device
constexpr int64_t kShortGapNs = 2'000;          // between kernels that wait for each other there is about 1 us (H200)
constexpr int64_t kLatenessNs = 2'000'000'000;  // four device flushes
constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

// Work of a stream runs in order; a copy and what computes wait for each other.
uint32_t queue_of(const DeviceEvent& event) {
  const uint32_t is_copy = event.kind == DeviceEventKind::Copy ? 1 : 0;
  return event.context << 24 ^ event.stream << 1 ^ is_copy;
}

}  // namespace

int64_t DeviceActivity::Sums::add(const Interval& interval) {
  const int64_t from_ns = std::max(interval.start_ns, until_ns);
  if (interval.end_ns <= from_ns) return interval.end_ns;
  if (until_ns != 0 && from_ns - until_ns <= kShortGapNs) short_gaps_ns += static_cast<uint64_t>(from_ns - until_ns);
  busy_ns += static_cast<uint64_t>(interval.end_ns - from_ns);
  until_ns = interval.end_ns;
  return from_ns;
}

// Most come in order: only what is new is sorted.
void DeviceActivity::Device::sort() {
  const auto is_before = [](const Interval& a, const Interval& b) { return a.start_ns < b.start_ns; };
  const auto middle = waiting.begin() + static_cast<ptrdiff_t>(n_sorted);
  if (!std::is_sorted(middle, waiting.end(), is_before)) std::stable_sort(middle, waiting.end(), is_before);
  if (middle != waiting.begin() && middle != waiting.end() && is_before(*middle, *(middle - 1)))
    std::inplace_merge(waiting.begin(), middle, waiting.end(), is_before);
  n_sorted = waiting.size();
}

void DeviceActivity::Device::settle(int64_t before_ns, std::vector<Pause>& pauses) {
  sort();
  size_t settled = 0;
  for (; settled < waiting.size() && waiting[settled].start_ns < before_ns; ++settled) {
    const Interval& interval = waiting[settled];
    const int64_t rested_ns = sums.until_ns;
    curve.began(interval.start_ns);
    if (rested_ns != 0 && interval.start_ns > rested_ns)
      pauses.push_back({rested_ns, interval.start_ns, interval.launch, interval.queue == last_queue});
    if (interval.end_ns >= rested_ns) last_queue = interval.queue;
    const int64_t from_ns = sums.add(interval);
    if (from_ns < interval.end_ns) curve.worked(from_ns, interval.end_ns);
    sums.until_ns = std::max(sums.until_ns, interval.end_ns);
  }
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<ptrdiff_t>(settled));
  n_sorted = waiting.size();
}

void DeviceActivity::settle_device(uint32_t id, Device& device, int64_t before_ns) {
  std::vector<Pause> pauses;
  device.settle(before_ns, pauses);
  if (!folds_idle_) return;
  for (const Pause& pause : pauses) {
    if (pause.launch.ended_ns == 0) continue;
    device.curve.waited(pause);
  }
  idle_.add(id, pauses);
}

void DeviceActivity::add(const DeviceEvent& event, const LaunchMoment& launch) {
  if (first_ns_ == 0 || event.start_ns < first_ns_) first_ns_ = event.start_ns;
  last_ns_ = std::max(last_ns_, event.end_ns);
  if (last_device_ == nullptr || last_device_id_ != event.device) {
    last_device_ = &devices_[event.device];  // a map's values stay where they are
    last_device_id_ = event.device;
  }
  Device& device = *last_device_;
  device.waiting.push_back({event.start_ns, event.end_ns, launch, queue_of(event)});
  if (device.waiting.size() % kSettleEvery == 0)
    settle_device(event.device, device, device.waiting.size() < kMaxWaiting ? last_ns_ - kLatenessNs : last_ns_);
}

void DeviceActivity::settle() {
  for (auto& [id, device] : devices_) settle_device(id, device, last_ns_ - kLatenessNs);
  forget_host();
}

void DeviceActivity::settle_all() {
  for (auto& [id, device] : devices_) settle_device(id, device, kAll);
}

// A pause that has not ended began at the last work of its device; before the first work there is none.
void DeviceActivity::forget_host() {
  int64_t needed_ns = (devices_.empty() ? idle_.host_ns() : last_ns_) - kLatenessNs;
  for (const auto& [id, device] : devices_)
    if (device.sums.until_ns != 0) needed_ns = std::min(needed_ns, device.sums.until_ns);
  idle_.forget_host(needed_ns);
}

ActivityTotals DeviceActivity::totals() {
  JsonObject json;
  uint64_t fed_ns = 0;
  for (auto& [id, device] : devices_) {
    device.sort();
    Sums sums = device.sums;
    for (const Interval& interval : device.waiting) (void)sums.add(interval);
    json.put(std::to_string(id), sums.busy_ns);
    fed_ns = std::max(fed_ns, sums.busy_ns + sums.short_gaps_ns);
  }
  return {json.text(), fed_ns};
}

std::string DeviceActivity::curves_json() const {
  if (devices_.empty()) return "";
  JsonObject json;
  for (const auto& [id, device] : devices_) json.raw(std::to_string(id), device.curve.json());
  return json.text();
}

}  // namespace bragg
