#include "data/thread_history.h"

#include <algorithm>
#include <span>

namespace bragg {

void ThreadHistory::forget_half() { spans_.erase(spans_.begin(), spans_.begin() + kMaxSpans / 2); }

std::vector<ThreadHistory::Span>::const_iterator ThreadHistory::first_ending_after(int64_t time_ns) const {
  return std::upper_bound(spans_.begin(), spans_.end(), time_ns,
                          [](int64_t time, const Span& span) { return time < span.end_ns; });
}

// Backwards in time: a span opens at its end and closes at its start, and outer ones come before those within them.
std::vector<HostMoment> ThreadHistory::innermost(int64_t from_ns, int64_t until_ns) const {
  std::vector<HostMoment> moments;
  std::vector<const Span*> open;
  int64_t known_from_ns = until_ns;
  const auto own = [&](int64_t start_ns) {
    start_ns = std::max(start_ns, from_ns);
    if (start_ns >= known_from_ns) return;
    const bool is_launch = !open.empty() && open.back()->is_launch;
    moments.push_back({start_ns, open.empty() ? NodeId::None : open.back()->node, is_launch});
    known_from_ns = start_ns;
  };
  const auto close = [&](int64_t time_ns) {
    while (!open.empty() && open.back()->start_ns >= time_ns) {
      const int64_t start_ns = open.back()->start_ns;
      own(start_ns);
      while (!open.empty() && open.back()->start_ns >= start_ns) open.pop_back();
    }
  };
  const std::span all(first_ending_after(from_ns), spans_.end());
  for (size_t i = all.size(); i-- > 0;) {
    if (all[i].start_ns >= until_ns) continue;
    close(all[i].end_ns);
    own(all[i].end_ns);
    open.push_back(&all[i]);
  }
  close(from_ns);
  own(from_ns);
  std::reverse(moments.begin(), moments.end());
  return moments;
}

void ThreadHistory::forget(int64_t before_ns) {
  spans_.erase(spans_.begin(), first_ending_after(before_ns));
  if (spans_.empty()) std::vector<Span>().swap(spans_);  // of a thread that has ended, no memory
}

}  // namespace bragg
