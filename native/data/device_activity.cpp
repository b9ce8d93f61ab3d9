#include "data/device_activity.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "data/json.h"

namespace bragg {
namespace {

constexpr size_t kSettleEvery = 1u << 16;
constexpr size_t kMaxWaiting = 1u << 20;        // 16 MB a device
constexpr int64_t kShortGapNs = 2'000;          // between kernels that wait for each other there is about 1 us (H200)
constexpr int64_t kLatenessNs = 2'000'000'000;  // four device flushes

}  // namespace

void DeviceActivity::Device::settle(int64_t before_ns) {
  std::sort(waiting.begin(), waiting.end(),
            [](const Interval& a, const Interval& b) { return a.start_ns < b.start_ns; });
  size_t settled = 0;
  for (; settled < waiting.size() && waiting[settled].start_ns < before_ns; ++settled) {
    const Interval& interval = waiting[settled];
    const int64_t from_ns = std::max(interval.start_ns, until_ns);
    curve.began(interval.start_ns);
    if (interval.end_ns <= from_ns) continue;
    if (until_ns != 0 && from_ns - until_ns <= kShortGapNs) short_gaps_ns += static_cast<uint64_t>(from_ns - until_ns);
    busy_ns += static_cast<uint64_t>(interval.end_ns - from_ns);
    until_ns = interval.end_ns;
    curve.worked(from_ns, until_ns);
  }
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<ptrdiff_t>(settled));
}

void DeviceActivity::add(const DeviceEvent& event) {
  if (first_ns_ == 0 || event.start_ns < first_ns_) first_ns_ = event.start_ns;
  last_ns_ = std::max(last_ns_, event.end_ns);
  Device& device = devices_[event.device];
  device.waiting.push_back({event.start_ns, event.end_ns});
  if (device.waiting.size() % kSettleEvery == 0)
    device.settle(device.waiting.size() < kMaxWaiting ? last_ns_ - kLatenessNs : last_ns_);
}

ActivityTotals DeviceActivity::totals() const {
  JsonObject json;
  uint64_t fed_ns = 0;
  for (const auto& [id, device] : devices_) {
    Device all = device;
    all.settle(std::numeric_limits<int64_t>::max());
    json.put(std::to_string(id), all.busy_ns);
    fed_ns = std::max(fed_ns, all.busy_ns + all.short_gaps_ns);
  }
  return {json.text(), fed_ns};
}

std::string DeviceActivity::curves_json() const {
  if (devices_.empty()) return "";
  JsonObject json;
  for (const auto& [id, device] : devices_) {
    Device all = device;
    all.settle(std::numeric_limits<int64_t>::max());
    json.raw(std::to_string(id), all.curve.json());
  }
  return json.text();
}

}  // namespace bragg
