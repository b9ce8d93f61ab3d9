#include "backends/telemetry/kept_power.h"

#include <algorithm>
#include <ctime>
#include <optional>
#include <span>
#include <utility>

#include "context/clock.h"

namespace bragg {
namespace {

constexpr int64_t kIntervalNs = 2'000'000'000, kLeastIntervalNs = 100'000'000;
constexpr uint32_t kMostSamples = 4096;
constexpr uint64_t kAheadUs = 1'000'000;     // no sample is so far ahead of the system's clock, unless of another one
constexpr uint64_t kPatienceUs = 5'000'000;  // without a sample
constexpr uint64_t kSameUs = 1'000;          // a time that was converted back is off by less

uint64_t system_us(int64_t ago_ns = 0) { return static_cast<uint64_t>((system_ns(CLOCK_REALTIME) - ago_ns) / 1000); }

std::optional<double> watts(nvml::ValueType type, const nvml::Value& value) {
  switch (type) {
    case nvml::ValueType::UnsignedInt:
      return value.u32 / 1e3;
    case nvml::ValueType::UnsignedLong:
    case nvml::ValueType::UnsignedLongLong:
      return static_cast<double>(value.u64) / 1e3;
    default:
      return std::nullopt;
  }
}

}  // namespace

KeptPower::KeptPower(const NvmlLibrary& library, nvml::Device device, std::chrono::microseconds age)
    : library_(library),
      device_(device),
      seen_us_(system_us() - static_cast<uint64_t>(age.count())),
      interval_ns_(kIntervalNs) {
  if (library.samples == nullptr) {
    reason_ = "this driver keeps no samples";
    return;
  }
  uint32_t count = 0;
  nvml::ValueType type{};
  const nvml::Result result = library.samples(device, nvml::Kept::TotalPower, 0, &type, &count, nullptr);
  if (result != nvml::Result::Success) reason_ = library.failure(result);
  buffer_.resize(std::clamp<uint32_t>(count, 1, kMostSamples));
}

void KeptPower::take(int64_t monotonic_ns, std::vector<TimedReading>& readings) {
  const int64_t since_ns = monotonic_ns - std::exchange(taken_ns_, monotonic_ns);
  const uint64_t now_us = system_us();
  seen_us_ = std::min(seen_us_, now_us);  // the clock was set back
  auto count = static_cast<uint32_t>(buffer_.size());
  nvml::ValueType type{};
  const nvml::Result result =
      library_.samples(device_, nvml::Kept::TotalPower, seen_us_, &type, &count, buffer_.data());
  if (result == nvml::Result::NotFound && now_us - seen_us_ < kPatienceUs) return;
  if (result != nvml::Result::Success) {
    reason_ = library_.failure(result);
    return;
  }
  const std::span came(buffer_.data(), std::min<size_t>(count, buffer_.size()));
  const bool is_full = came.size() + 1 >= buffer_.size();     // an H100 has room for 120, and brings 119
  if (is_full && since_ns < interval_ns_ + interval_ns_ / 4)  // it may have held more meanwhile
    interval_ns_ = std::max(interval_ns_ / 2, kLeastIntervalNs);
  std::ranges::sort(came, {}, &nvml::Sample::time_us);
  for (const nvml::Sample& sample : came) {
    if (sample.time_us <= seen_us_) continue;
    const std::optional<double> power_w = watts(type, sample.value);
    if (!power_w || sample.time_us > now_us + kAheadUs) {
      reason_ = "the type or the clock of its samples is not known";
      return;
    }
    seen_us_ = sample.time_us;
    const int64_t ago_us = static_cast<int64_t>(now_us) - static_cast<int64_t>(sample.time_us);
    readings.push_back({.monotonic_ns = monotonic_ns - ago_us * 1000, .reading = {}});
    readings.back().reading.values[gpu_quantity::kPower] = *power_w;
  }
}

void KeptPower::skip_until(int64_t time_ns) {
  seen_us_ = std::max(seen_us_, system_us(monotonic_ns() - time_ns) + kSameUs);
}

}  // namespace bragg
