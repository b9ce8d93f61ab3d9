#include "data/idle_fold.h"

#include <algorithm>

namespace bragg {

IdleFold::FrameIs IdleFold::frame_of(NodeId node) {
  const FrameId frame = CallingContextTree::instance().frame(node);
  FrameIs& known = frames_[frame];
  if (known == FrameIs::NotKnown) {
    const FrameKind kind = FrameTable::instance().frame(frame).kind;  // under its lock
    const bool is_one = kind == FrameKind::Scope || kind == FrameKind::Operator || kind == FrameKind::GpuApi;
    known = is_one ? FrameIs::Scope : kind == FrameKind::State ? FrameIs::State : FrameIs::Other;
  }
  return known;
}

// Who owns the times for which no ended scope is known: the scope that is still open and was around the launch, else
// the code that launched. A scope that began after the last such time has ended, so it is not the owner. What is above
// a state such as `[backward]` was open on another thread, or long ago.
NodeId IdleFold::owner_of_rest(const LaunchMoment& launch, std::span<const HostMoment> moments, int64_t until_ns) {
  const auto& tree = CallingContextTree::instance();
  NodeId node = launch.node;
  for (size_t i = 1; i < moments.size() && moments[i].start_ns < until_ns; ++i)
    if (moments[i - 1].node == NodeId::None) {
      node = moments[i].node;
      const bool is_owner = moments[i].is_launch || node == kRootNode || frame_of(node) == FrameIs::State;
      if (!is_owner) node = tree.parent(node);
    }
  while (node != kRootNode && frame_of(node) == FrameIs::Other) node = tree.parent(node);
  return node != kRootNode && frame_of(node) == FrameIs::Scope ? node : launch.node;
}

void IdleFold::read_hosts(std::span<const Pause> pauses) {
  hosts_.assign(threads_.size(), {});
  for (const Pause& pause : pauses) {
    if (!is_followed(pause)) continue;
    Host& host = hosts_[pause.launch.thread];
    if (host.until_ns == 0) host.from_ns = pause.start_ns;
    host.until_ns = pause.end_ns;
  }
  for (size_t thread = 0; thread < hosts_.size(); ++thread)
    if (Host& host = hosts_[thread]; host.until_ns != 0)
      host.moments = threads_[thread].innermost(host.from_ns, host.until_ns);
}

void IdleFold::add(uint32_t device, std::span<const Pause> pauses) {
  read_hosts(pauses);
  for (const Pause& pause : pauses) {
    const bool is_short = pause.end_ns - pause.start_ns < kShortPauseNs;
    const bool is_known = pause.launch.ended_ns != 0;
    const int64_t late_until_ns = pause.late_until_ns();
    if (!is_known) {
      add_part(device, is_short ? IdleKind::ShortNotKnown : IdleKind::NotKnown, kRootNode, pause.start_ns,
               pause.end_ns);
    } else if (is_short) {
      add_part(device, IdleKind::ShortLate, kRootNode, pause.start_ns, late_until_ns);
      add_launched(device, pause, true);
    } else {
      if (is_followed(pause)) {
        add_late(device, pause, hosts_[pause.launch.thread]);
      } else {
        add_part(device, IdleKind::Late, pause.launch.node, pause.start_ns, late_until_ns);
      }
      add_launched(device, pause, false);
    }
    end_pause(device, pause.end_ns);
  }
}

void IdleFold::add_launched(uint32_t device, const Pause& pause, bool is_short) {
  const int64_t starts_until_ns = pause.starts_until_ns();
  const NodeId node = is_short ? kRootNode : pause.launch.node;
  const auto kind = [is_short](IdleKind any, IdleKind of_short) { return is_short ? of_short : any; };
  add_part(device, kind(IdleKind::Queued, IdleKind::ShortQueued), node, pause.late_until_ns(), starts_until_ns);
  if (starts_until_ns == pause.end_ns) return;
  const int64_t changes_until_ns = pause.changes_until_ns();
  add_part(device, kind(IdleKind::FullQueue, IdleKind::ShortFullQueue), node, starts_until_ns, changes_until_ns);
  add_part(device, kind(IdleKind::Waited, IdleKind::ShortWaited), node, changes_until_ns, pause.end_ns);
}

void IdleFold::add_late(uint32_t device, const Pause& pause, Host& host) {
  const std::span<const HostMoment> moments = host.moments;
  size_t& at = host.at;
  const int64_t until_ns = pause.late_until_ns();
  while (at + 1 < moments.size() && moments[at + 1].start_ns <= pause.start_ns) ++at;
  NodeId rest = NodeId::None;
  for (size_t i = at; i < moments.size() && moments[i].start_ns < until_ns; ++i) {
    const int64_t start_ns = std::max(moments[i].start_ns, pause.start_ns);
    const int64_t end_ns = i + 1 < moments.size() ? std::min(moments[i + 1].start_ns, until_ns) : until_ns;
    NodeId node = moments[i].node;
    if (node == NodeId::None)
      node = rest != NodeId::None ? rest : rest = owner_of_rest(pause.launch, moments.subspan(i), until_ns);
    add_part(device, IdleKind::Late, node, start_ns, end_ns);
  }
}

void IdleFold::add_part(uint32_t device, IdleKind kind, NodeId node, int64_t start_ns, int64_t end_ns) {
  if (end_ns <= start_ns) return;
  table_.add(device, kind, node, start_ns, end_ns);
  if (parts_.size() <= kFewParts)
    for (Part& part : parts_)
      if (part.node == node && part.kind == kind) return void(part.lasts_ns += end_ns - start_ns);
  parts_.push_back({node, kind, end_ns - start_ns});
}

void IdleFold::add_up_parts() {
  std::sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.is_before(b); });
  size_t n_parts = 0;
  for (const Part& part : parts_) {
    if (n_parts > 0 && parts_[n_parts - 1].node == part.node && parts_[n_parts - 1].kind == part.kind)
      parts_[n_parts - 1].lasts_ns += part.lasts_ns;
    else
      parts_[n_parts++] = part;
  }
  parts_.resize(n_parts);
}

// Parts of one node count as one.
void IdleFold::end_pause(uint32_t device, int64_t end_ns) {
  if (parts_.size() > kFewParts) add_up_parts();
  const Part* largest = parts_.data();
  for (const Part& part : parts_)
    if (part.lasts_ns > largest->lasts_ns || (part.lasts_ns == largest->lasts_ns && part.is_before(*largest)))
      largest = &part;
  for (const Part& part : parts_)
    table_.note_pause(device, part.kind, part.node, end_ns, part.lasts_ns, &part == largest);
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
