// Pauses of devices become idle time of the code that they waited for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/idle_table.h"
#include "data/per_id.h"
#include "data/thread_history.h"

namespace bragg {

// When, where and by whom work was launched.
struct LaunchMoment {
  NodeId node = kRootNode;
  uint32_t thread = kNone;  // its track
  int64_t ended_ns = 0;     // when the call returned; 0: not known
};

// A time in which nothing ran on a device, and the launch of the work that ended it.
struct Pause {
  int64_t start_ns;
  int64_t end_ns;
  LaunchMoment launch;
  bool is_behind_own;  // it began when work of the same queue had ended

  // Up to here nothing was launched.
  [[nodiscard]] int64_t late_until_ns() const { return within(start_ns, launch.ended_ns); }
  // Up to here what was launched could not have begun.
  [[nodiscard]] int64_t starts_until_ns() const { return within(start_ns, launch.ended_ns + kStartNs); }
  // Up to here the device got from the work before to this one; the rest it waited.
  [[nodiscard]] int64_t changes_until_ns() const {
    return within(starts_until_ns(), is_behind_own ? start_ns + kStartNs : start_ns);
  }

 private:
  [[nodiscard]] int64_t within(int64_t first_ns, int64_t time_ns) const {
    return std::min(std::max(first_ns, time_ns), end_ns);
  }
};

// The same division as that of a timeline (`bragg.analyze.idle_paths`): up to the end of its launch a pause belongs to
// what the launching thread was in, the rest by class to the launch itself. Threads: consumer only.
class IdleFold {
 public:
  // 24 MB. A program may begin threads without end, while nothing runs on its devices: what began first is forgotten.
  static constexpr size_t kMaxHostSpans = 1u << 20;

  void note_host(uint32_t thread, int64_t start_ns, int64_t end_ns, NodeId node, bool is_launch) {
    if (thread >= threads_.size()) threads_.resize(thread + 1);
    threads_[thread].note(start_ns, end_ns, node, is_launch);
    host_ns_ = std::max(host_ns_, end_ns);
  }
  void add(uint32_t device, std::span<const Pause> pauses);  // ascending
  void forget_host(int64_t before_ns);
  [[nodiscard]] int64_t host_ns() const { return host_ns_; }  // until when it is known
  [[nodiscard]] size_t host_spans() const;
  [[nodiscard]] IdleTable& table() { return table_; }

 private:
  struct Part {
    NodeId node;
    IdleKind kind;
    int64_t lasts_ns;

    [[nodiscard]] bool is_before(const Part& other) const {
      return node != other.node ? node < other.node : kind < other.kind;
    }
  };
  static constexpr size_t kFewParts = 8;  // of a pause: so many are looked through, more are sorted

  // A thread that was waited for: what it was in while the pauses at hand lasted.
  struct Host {
    int64_t from_ns = 0;
    int64_t until_ns = 0;  // 0: it was not
    std::vector<HostMoment> moments;
    size_t at = 0;  // of those, for the pause at hand
  };
  enum class FrameIs : uint8_t { NotKnown, Scope, State, Other };

  [[nodiscard]] bool is_followed(const Pause& pause) const {
    return pause.launch.ended_ns > pause.start_ns && pause.end_ns - pause.start_ns >= kShortPauseNs &&
           pause.launch.thread < threads_.size();
  }
  [[nodiscard]] FrameIs frame_of(NodeId node);
  [[nodiscard]] NodeId owner_of_rest(const LaunchMoment& launch, std::span<const HostMoment> moments, int64_t until_ns);
  void read_hosts(std::span<const Pause> pauses);
  void add_late(uint32_t device, const Pause& pause, Host& host);
  void add_launched(uint32_t device, const Pause& pause, bool is_short);
  void add_part(uint32_t device, IdleKind kind, NodeId node, int64_t start_ns, int64_t end_ns);
  void add_up_parts();
  void end_pause(uint32_t device, int64_t end_ns);

  std::vector<ThreadHistory> threads_;  // by track
  int64_t host_ns_ = 0;
  std::vector<Host> hosts_;  // by track
  std::vector<Part> parts_;  // of the pause at hand
  PerId<FrameId, FrameIs> frames_;
  IdleTable table_;
};

}  // namespace bragg
