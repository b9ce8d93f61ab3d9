#include "data/activity_curve.h"

#include <algorithm>

#include "data/json.h"

namespace bragg {
namespace {

constexpr size_t kMaxBins = 4096;  // 192 KB a device

}  // namespace

size_t ActivityCurve::new_bin_of(int64_t time_ns) {
  if (start_ns_ == 0) start_ns_ = time_ns;
  const int64_t since_ns = std::max<int64_t>(time_ns - start_ns_, 0);
  while (since_ns >> bin_bits_ >= static_cast<int64_t>(kMaxBins)) {
    bins_.resize(bins_.size() + bins_.size() % 2);
    for (size_t i = 0; i < bins_.size() / 2; ++i) {
      const Bin& first = bins_[2 * i];
      const Bin& second = bins_[2 * i + 1];
      bins_[i] = {first.busy_ns + second.busy_ns,
                  first.launches + second.launches,
                  first.late_ns + second.late_ns,
                  first.queued_ns + second.queued_ns,
                  first.full_queue_ns + second.full_queue_ns,
                  first.waited_ns + second.waited_ns};
    }
    bins_.resize(bins_.size() / 2);
    ++bin_bits_;
  }
  const auto bin = static_cast<size_t>(since_ns >> bin_bits_);
  if (bin >= bins_.size()) bins_.resize(bin + 1);
  return bin;
}

void ActivityCurve::worked(int64_t start_ns, int64_t end_ns) { add(&Bin::busy_ns, start_ns, end_ns); }

void ActivityCurve::waited(const Pause& pause) {
  const int64_t late_until_ns = pause.late_until_ns();
  add(&Bin::late_ns, pause.start_ns, late_until_ns);
  add(&Bin::queued_ns, late_until_ns, pause.end_ns);
  if (const int64_t starts_until_ns = pause.starts_until_ns(); starts_until_ns < pause.end_ns) {
    const int64_t changes_until_ns = pause.changes_until_ns();
    add(&Bin::full_queue_ns, starts_until_ns, changes_until_ns);
    add(&Bin::waited_ns, changes_until_ns, pause.end_ns);
  }
}

void ActivityCurve::add(int64_t Bin::* column, int64_t start_ns, int64_t end_ns) {
  if (end_ns <= start_ns) return;
  const size_t last = bin_of(end_ns);  // the first: bins may become wider
  start_ns = std::max(start_ns, start_ns_);
  const size_t first = bin_of(start_ns);
  if (first == last) {
    bins_[first].*column += std::max<int64_t>(end_ns - start_ns, 0);
    return;
  }
  for (size_t bin = first; bin <= last; ++bin) {
    const int64_t from_ns = start_ns_ + (static_cast<int64_t>(bin) << bin_bits_);
    const int64_t until_ns = from_ns + (int64_t{1} << bin_bits_);
    bins_[bin].*column += std::max<int64_t>(std::min(end_ns, until_ns) - std::max(start_ns, from_ns), 0);
  }
}

std::string ActivityCurve::json() const {
  JsonObject json;
  json.put("start_ns", start_ns_).put("bin_ns", int64_t{1} << bin_bits_);
  const auto put = [&](const char* name, auto Bin::* column) {
    json.raw(name, json_array(bins_, [column](const Bin& bin) { return std::to_string(bin.*column); }));
  };
  put("busy_ns", &Bin::busy_ns);
  put("launches", &Bin::launches);
  put("late_ns", &Bin::late_ns);
  put("queued_ns", &Bin::queued_ns);
  put("full_queue_ns", &Bin::full_queue_ns);
  put("waited_ns", &Bin::waited_ns);
  return json.text();
}

}  // namespace bragg
