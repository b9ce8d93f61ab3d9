#include "data/activity_curve.h"

#include <algorithm>

#include "data/json.h"

namespace bragg {
namespace {

constexpr size_t kMaxBins = 4096;  // 64 KB a device

}  // namespace

size_t ActivityCurve::bin_of(int64_t time_ns) {
  if (start_ns_ == 0) start_ns_ = time_ns;
  const int64_t since_ns = std::max<int64_t>(time_ns - start_ns_, 0);
  while (since_ns / bin_ns_ >= static_cast<int64_t>(kMaxBins)) {
    bins_.resize(bins_.size() + bins_.size() % 2);
    for (size_t i = 0; i < bins_.size() / 2; ++i)
      bins_[i] = {bins_[2 * i].busy_ns + bins_[2 * i + 1].busy_ns, bins_[2 * i].launches + bins_[2 * i + 1].launches};
    bins_.resize(bins_.size() / 2);
    bin_ns_ *= 2;
  }
  const auto bin = static_cast<size_t>(since_ns / bin_ns_);
  if (bin >= bins_.size()) bins_.resize(bin + 1);
  return bin;
}

void ActivityCurve::began(int64_t start_ns) {
  const size_t bin = bin_of(start_ns);
  ++bins_[bin].launches;
}

void ActivityCurve::worked(int64_t start_ns, int64_t end_ns) {
  const size_t last = bin_of(end_ns);  // the first: bins may become wider
  start_ns = std::max(start_ns, start_ns_);
  for (size_t bin = bin_of(start_ns); bin <= last; ++bin) {
    const int64_t from_ns = start_ns_ + static_cast<int64_t>(bin) * bin_ns_;
    bins_[bin].busy_ns += std::max<int64_t>(std::min(end_ns, from_ns + bin_ns_) - std::max(start_ns, from_ns), 0);
  }
}

std::string ActivityCurve::json() const {
  std::string busy = "[";
  std::string launches = "[";
  for (const Bin& bin : bins_) {
    if (&bin != bins_.data()) busy += ',', launches += ',';
    busy += std::to_string(bin.busy_ns);
    launches += std::to_string(bin.launches);
  }
  JsonObject json;
  json.put("start_ns", start_ns_).put("bin_ns", bin_ns_).raw("busy_ns", busy + ']').raw("launches", launches + ']');
  return json.text();
}

}  // namespace bragg
