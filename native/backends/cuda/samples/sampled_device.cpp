#include "backends/cuda/samples/sampled_device.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "backends/cuda/driver/cuda_driver.h"
#include "backends/cuda/samples/launch_gate.h"
#include "backends/cuda/samples/sampled_spans.h"
#include "context/clock.h"
#include "data/json.h"

namespace bragg {
namespace {

constexpr uint32_t kPeriodStep = 2;  // four times fewer samples when the buffer was full
constexpr int kEndTries = 50;        // 1 s with threads that do not come out of a launch

}  // namespace

SampledDevice::SampledDevice(const CuptiLibrary& cupti, const PcSamplingLibrary& library, cuda::Context context,
                             uint32_t ordinal, const Settings& settings)
    : cupti_(cupti), library_(library), sampler_(library, context), ordinal_(ordinal), settings_(settings) {}

// Asked first: a sampler that CUPTI refuses to start crashes the program (see SamplerLock).
std::string SampledDevice::other_user() {
  const pid_t owner = lock_.acquire(CudaDriver::mapped().uuid(ordinal_));
  if (owner != getpid()) return "process " + std::to_string(owner) + " samples it; one process at a time can";
  if (has_other_user(library_, ordinal_))
    return "another process uses its counters (ncu, DCGM or another profiler); end it and run again";
  return "";
}

void SampledDevice::fail(cupti::Result result) { refuse(sampling_refusal(cupti_, result)); }

void SampledDevice::refuse(std::string reason) {
  is_enabled_ = is_running_ = false;
  lock_.release();
  SampledSpans::instance().end(ordinal_, now_ns());
  reason_ = std::move(reason);
  std::fprintf(stderr, "bragg: instructions of GPU %u are not sampled: %s\n", ordinal_, reason_.c_str());
}

template <class Call>
bool SampledDevice::while_nothing_launches(Call&& call) {
  const LaunchGate::Closed gate;
  if (!gate) return false;
  if (const auto result = call(); result != cupti::Result::Success) fail(result);
  return true;
}

bool SampledDevice::enable() {
  if (std::string other = has_begun_ ? "" : other_user(); !other.empty()) {
    refuse(std::move(other));
    return false;
  }
  const auto result = sampler_.enable({settings_.mode, settings_.period});
  if (result != cupti::Result::Success) fail(result);
  return is_enabled_ = result == cupti::Result::Success;
}

void SampledDevice::start() {
  if (is_refused() || is_running_) return;
  const LaunchGate::Closed gate;
  if (!gate) return;
  const int64_t began_ns = now_ns();
  const bool was_enabled = is_enabled_;
  if (!was_enabled && !enable()) return;
  if (const auto result = sampler_.start(); result != cupti::Result::Success) return fail(result);
  is_running_ = has_begun_ = true;
  SampledSpans::instance().begin(ordinal_, began_ns);
  if (!was_enabled) enabling_ns_ += now_ns() - began_ns;
}

void SampledDevice::stop(std::vector<PcSample>& samples) {
  if (!is_running_ || !while_nothing_launches([this] { return sampler_.stop(); })) return;
  is_running_ = false;
  SampledSpans::instance().end(ordinal_, now_ns());
  drain(samples);
}

void SampledDevice::drain(std::vector<PcSample>& samples) {
  if (!is_enabled_) return;
  const DrainResult drained = sampler_.drain(samples, counters_);
  if (drained.buffer_full) {
    restart(samples);
  } else if (drained.result != cupti::Result::Success) {
    fail(drained.result);
  }
}

// Only enabling anew empties the hardware's buffer, and fewer samples keep it from filling again.
void SampledDevice::restart(std::vector<PcSample>& samples) {
  if (!while_nothing_launches([&] { return sampler_.disable(samples, counters_); }) || is_refused()) return;
  is_enabled_ = false;
  ++restarts_;
  settings_.period = std::min(settings_.period + kPeriodStep, cupti::kMaxSamplingPeriod);
  std::fprintf(stderr, "bragg: the sample buffer of GPU %u was full: now sampled every 2^%u cycles\n", ordinal_,
               settings_.period);
  const bool was_running = std::exchange(is_running_, false);
  SampledSpans::instance().end(ordinal_, now_ns());
  if (was_running) start();
}

void SampledDevice::end(std::vector<PcSample>& samples) {
  for (int tries = 0; is_enabled_ && tries < kEndTries; ++tries) {
    stop(samples);
    const auto disable = [&] { return sampler_.disable(samples, counters_); };
    if (!is_running_ && while_nothing_launches(disable)) is_enabled_ = false;
  }
}

std::string SampledDevice::description_json() const {
  JsonObject json;
  json.put("state", !reason_.empty() ? "not sampled" : has_begun_ ? "sampled" : "not begun");
  if (!reason_.empty()) json.put("reason", reason_);
  return json.put("period", settings_.period)
      .put("restarts", restarts_)
      .put("enabling_ns", enabling_ns_)
      .put("total", counters_.total)
      .put("dropped", counters_.dropped)
      .put("other_kernels", counters_.other)
      .text();
}

}  // namespace bragg
