#include "data/idle_fold.h"

#include <algorithm>
#include <map>

namespace bragg {
namespace {

bool is_scope(NodeId node) {
  const FrameKind kind = FrameTable::instance().frame(CallingContextTree::instance().frame(node)).kind;
  return kind == FrameKind::Scope || kind == FrameKind::Operator || kind == FrameKind::GpuApi;
}

struct Moments {
  int64_t from_ns;
  int64_t until_ns;
  std::vector<HostMoment> list;
  size_t at = 0;
};

// Of a time in which no scope was open that has ended since: that of the scope which is still open, and was around the
// launch; without one that of the code that launched. What began after the last such time has ended, and is no owner.
NodeId owner_of_rest(const LaunchMoment& launch, std::span<const HostMoment> moments, int64_t until_ns) {
  const auto& tree = CallingContextTree::instance();
  NodeId node = launch.node;
  for (size_t i = 1; i < moments.size() && moments[i].start_ns < until_ns; ++i)
    if (moments[i - 1].node == kNone) node = moments[i].node == kRootNode ? kRootNode : tree.parent(moments[i].node);
  while (node != kRootNode && !is_scope(node)) node = tree.parent(node);
  return node != kRootNode ? node : launch.node;
}

}  // namespace

void IdleFold::add(uint32_t device, std::span<const Pause> pauses) {
  std::map<uint32_t, Moments> threads;
  const auto is_followed = [&](const Pause& pause) {
    return pause.launch.ended_ns > pause.start_ns && pause.end_ns - pause.start_ns >= kShortPauseNs &&
           pause.launch.thread < threads_.size();
  };
  for (const Pause& pause : pauses) {
    if (!is_followed(pause)) continue;
    const auto [found, is_new] = threads.try_emplace(pause.launch.thread, Moments{pause.start_ns, pause.end_ns, {}});
    found->second.until_ns = pause.end_ns;
  }
  for (auto& [thread, moments] : threads) moments.list = threads_[thread].innermost(moments.from_ns, moments.until_ns);
  for (const Pause& pause : pauses) {
    const bool is_short = pause.end_ns - pause.start_ns < kShortPauseNs;
    const bool is_known = pause.launch.ended_ns != 0;
    const int64_t late_until_ns = pause.late_until_ns();
    if (!is_known) {
      add_part(device, is_short ? IdleKind::ShortNotKnown : IdleKind::NotKnown, kRootNode, pause.start_ns,
               pause.end_ns);
    } else if (is_short) {
      add_part(device, IdleKind::ShortLate, kRootNode, pause.start_ns, late_until_ns);
      add_part(device, IdleKind::ShortQueued, kRootNode, late_until_ns, pause.end_ns);
    } else {
      if (is_followed(pause)) {
        Moments& moments = threads.at(pause.launch.thread);
        add_late(device, pause, moments.list, moments.at);
      } else {
        add_part(device, IdleKind::Late, pause.launch.node, pause.start_ns, late_until_ns);
      }
      add_part(device, IdleKind::Queued, pause.launch.node, late_until_ns, pause.end_ns);
    }
    end_pause(device, pause.end_ns);
  }
}

void IdleFold::add_late(uint32_t device, const Pause& pause, std::span<const HostMoment> moments, size_t& at) {
  const int64_t until_ns = pause.late_until_ns();
  while (at + 1 < moments.size() && moments[at + 1].start_ns <= pause.start_ns) ++at;
  NodeId rest = kNone;
  for (size_t i = at; i < moments.size() && moments[i].start_ns < until_ns; ++i) {
    const int64_t start_ns = std::max(moments[i].start_ns, pause.start_ns);
    const int64_t end_ns = i + 1 < moments.size() ? std::min(moments[i + 1].start_ns, until_ns) : until_ns;
    NodeId node = moments[i].node;
    if (node == kNone) node = rest != kNone ? rest : rest = owner_of_rest(pause.launch, moments.subspan(i), until_ns);
    add_part(device, IdleKind::Late, node, start_ns, end_ns);
  }
}

void IdleFold::add_part(uint32_t device, IdleKind kind, NodeId node, int64_t start_ns, int64_t end_ns) {
  if (end_ns <= start_ns) return;
  table_.add(device, kind, node, start_ns, end_ns);
  parts_.push_back({node, kind, end_ns - start_ns});
}

void IdleFold::end_pause(uint32_t device, int64_t end_ns) {
  const auto is_before = [](const Part& a, const Part& b) {
    return a.node != b.node ? a.node < b.node : a.kind < b.kind;
  };
  if (parts_.size() > 1) std::sort(parts_.begin(), parts_.end(), is_before);
  size_t n_parts = 0;
  for (const Part& part : parts_) {  // those of one node as one
    if (n_parts > 0 && parts_[n_parts - 1].node == part.node && parts_[n_parts - 1].kind == part.kind)
      parts_[n_parts - 1].lasts_ns += part.lasts_ns;
    else
      parts_[n_parts++] = part;
  }
  parts_.resize(n_parts);
  const auto largest = std::max_element(parts_.begin(), parts_.end(),
                                        [](const Part& a, const Part& b) { return a.lasts_ns < b.lasts_ns; });
  for (auto part = parts_.begin(); part != parts_.end(); ++part)
    table_.note_pause(device, part->kind, part->node, end_ns, part->lasts_ns, part == largest);
  parts_.clear();
}

void IdleFold::forget_host(int64_t before_ns) {
  for (ThreadHistory& thread : threads_) thread.forget(before_ns);
  while (host_spans() > kMaxHostSpans) {  // the first half of their time
    int64_t first_ns = host_ns_;
    for (const ThreadHistory& thread : threads_)
      if (thread.size() > 0) first_ns = std::min(first_ns, thread.first_end_ns());
    for (ThreadHistory& thread : threads_) thread.forget(first_ns + (host_ns_ - first_ns) / 2);
  }
}

size_t IdleFold::host_spans() const {
  size_t spans = 0;
  for (const ThreadHistory& thread : threads_) spans += thread.size();
  return spans;
}

}  // namespace bragg
