// What one thread was in, for as long as records of devices that waited for it may still come.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "context/calling_context_tree.h"

namespace bragg {

// From `start_ns` on until the next moment of the list; None: in nothing that has ended.
struct HostMoment {
  int64_t start_ns;
  NodeId node;
  bool is_launch;  // a call that launches: `node` is the code around it
};

// Threads: consumer only.
class ThreadHistory {
 public:
  // 6 MB: two seconds of 130,000 scopes each. Where there are more, the oldest half is forgotten.
  static constexpr size_t kMaxSpans = 1u << 18;

  // Scopes, operators and calls, as they end.
  void note(int64_t start_ns, int64_t end_ns, NodeId node, bool is_launch) {
    if (end_ns <= start_ns) return;
    if (spans_.size() == kMaxSpans) forget_half();
    if (!spans_.empty()) end_ns = std::max(end_ns, spans_.back().end_ns);  // two readings of the clock may swap
    spans_.push_back({start_ns, end_ns, node, is_launch});
  }
  // The innermost one at each moment from `from_ns` on, ascending.
  [[nodiscard]] std::vector<HostMoment> innermost(int64_t from_ns, int64_t until_ns) const;
  void forget(int64_t before_ns);
  [[nodiscard]] size_t size() const { return spans_.size(); }
  [[nodiscard]] int64_t first_end_ns() const { return spans_.front().end_ns; }  // of some

 private:
  struct Span {
    int64_t start_ns;
    int64_t end_ns;
    NodeId node;
    bool is_launch;
  };
  void forget_half();
  [[nodiscard]] std::vector<Span>::const_iterator first_ending_after(int64_t time_ns) const;

  std::vector<Span> spans_;  // by end
};

}  // namespace bragg
