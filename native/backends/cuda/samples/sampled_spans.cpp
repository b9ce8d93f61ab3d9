#include "backends/cuda/samples/sampled_spans.h"

#include <algorithm>
#include <limits>

namespace bragg {
namespace {

constexpr int64_t kOpen = std::numeric_limits<int64_t>::max();
// Records come within seconds of what they tell of; windows are at least 40 ms apart.
constexpr size_t kMaxSpans = 256;

}  // namespace

SampledSpans& SampledSpans::instance() {
  static SampledSpans& spans = *new SampledSpans;  // records come until the process is gone
  return spans;
}

void SampledSpans::begin(uint32_t device, int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  std::vector<Span>& spans = of_device_[device];
  if (!spans.empty() && spans.back().end_ns == kOpen) return;
  if (spans.size() >= kMaxSpans) spans.erase(spans.begin(), spans.begin() + kMaxSpans / 2);
  spans.push_back({now_ns, kOpen});
}

void SampledSpans::end(uint32_t device, int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  std::vector<Span>& spans = of_device_[device];
  if (!spans.empty() && spans.back().end_ns == kOpen) spans.back().end_ns = now_ns;
}

int64_t SampledSpans::overlap_ns(uint32_t device, int64_t start_ns, int64_t end_ns) {
  const std::lock_guard lock(mutex_);
  const auto found = of_device_.find(device);
  if (found == of_device_.end()) return 0;
  int64_t overlap_ns = 0;
  for (auto span = found->second.rbegin(); span != found->second.rend() && span->end_ns > start_ns; ++span)
    overlap_ns += std::max<int64_t>(0, std::min(end_ns, span->end_ns) - std::max(start_ns, span->begin_ns));
  return overlap_ns;
}

}  // namespace bragg
