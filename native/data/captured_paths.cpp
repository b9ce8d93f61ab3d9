#include "data/captured_paths.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace bragg {
namespace {

constexpr const char* kCapturedAt = "<captured_at>";
constexpr const char* kCapturedBefore = "<captured before recording>";
constexpr const char* kCaptureNotKnown = "<capture not known>";  // updated by a graph of another shape

NodeId state_below(NodeId parent, const char* name) {
  return CallingContextTree::instance().child(parent, intern_frame(FrameKind::State, name));
}

// The path of `node` from the root, below `parent`.
NodeId graft(NodeId parent, NodeId node) {
  auto& tree = CallingContextTree::instance();
  std::vector<FrameId> path;
  for (; node != kRootNode; node = tree.parent(node)) path.push_back(tree.frame(node));
  for (const FrameId frame : std::views::reverse(path)) parent = tree.child(parent, frame);
  return parent;
}

NodeId common_ancestor(NodeId a, NodeId b) {
  const auto& tree = CallingContextTree::instance();
  while (a != b) {  // parents precede children
    NodeId& deeper = a > b ? a : b;
    deeper = tree.parent(deeper);
  }
  return a;
}

}  // namespace

NodeId captured_below(NodeId launch, NodeId captured) { return graft(state_below(launch, kCapturedAt), captured); }

CapturedPlace& CapturedPaths::PlaceTable::find(GraphNodeId node) {
  size_t i = (number_of(node) + spread(number_of(graph_id(node)))) & (slots_.size() - 1);
  while (slots_[i].node != GraphNodeId::None && slots_[i].node != node) i = (i + 1) & (slots_.size() - 1);
  return slots_[i];
}

CapturedPlace& CapturedPaths::PlaceTable::set(const CapturedPlace& place) {
  if ((used_ + 1) * 2 > slots_.size()) {
    const std::vector<CapturedPlace> before = std::exchange(slots_, std::vector<CapturedPlace>(slots_.size() * 2));
    for (const CapturedPlace& each : before)
      if (each.node != GraphNodeId::None) find(each.node) = each;
  }
  CapturedPlace& slot = find(place.node);
  used_ += slot.node == GraphNodeId::None;
  return slot = place;
}

CapturedPaths::Replay& CapturedPaths::replay_of(const Launch& launch) {
  if (last_ != nullptr && key_of(last_->launch) == key_of(launch)) return *last_;
  auto& replay = replays_[key_of(launch)];
  if (replay == nullptr)
    replay = std::make_unique<Replay>(Replay{launch, GraphRegistry::instance().find(launch.graph), {}, {}});
  last_ = replay.get();
  return *last_;
}

void CapturedPaths::note_launch(const Launch& launch) {
  Replay& replay = replay_of(launch);
  if (replay.graph == nullptr) return;
  if (!replay.graph->values.empty()) ++replay.launches[launch.mask];
  note_exec(replay.graph->exec, launch);
  note_readings(*replay.graph, launch);
}

void CapturedPaths::take_back(const Launch& launch) {
  Replay& replay = replay_of(launch);
  if (replay.graph == nullptr) return;
  const auto counted = replay.launches.find(launch.mask);
  if (counted != replay.launches.end() && counted->second > 0) --counted->second;
  for (const ReadingId reading : replay.graph->readings) readings_.take_back(reading, launch);
}

void CapturedPaths::note_unrecorded_launch(const Launch& launch) {
  const Replay& replay = replay_of(launch);
  if (replay.graph != nullptr) note_readings(*replay.graph, launch);
}

void CapturedPaths::note_readings(const GraphVersion& graph, const Launch& launch) {
  for (const ReadingId reading : graph.readings) readings_.note_launch(reading, launch);
}

void CapturedPaths::note_exec(GraphId exec, const Launch& launch) {
  const auto [found, is_first] = launched_.try_emplace(exec, launch);
  if (is_first) return;
  const ContextNodes common{common_ancestor(found->second.shadow, launch.shadow),
                            common_ancestor(found->second.python, launch.python)};
  found->second = launch;
  found->second.shadow = common.shadow;
  found->second.python = common.python;
}

const Launch* CapturedPaths::launch_of(GraphId exec) const {
  const auto found = launched_.find(exec);
  return found != launched_.end() ? &found->second : nullptr;
}

NodeId CapturedPaths::find_node(const CapturedPlace& place, const Launch& launch, bool python_context) {
  const NodeId above = python_context ? launch.python : launch.shadow;
  if (place.captured != nullptr) {
    const ContextNodes& captured = place.captured->nodes;
    const NodeId path = captured_below(above, python_context ? captured.python : captured.shadow);
    return CallingContextTree::instance().child(path, place.frame);
  }
  const Replay& replay = replay_of(launch);
  const bool is_lost = launch.graph != GraphVersionId::None && (replay.graph == nullptr || replay.graph->is_update);
  return CallingContextTree::instance().child(state_below(above, is_lost ? kCaptureNotKnown : kCapturedBefore),
                                              place.frame);
}

std::vector<ReplayedValues> CapturedPaths::take_values() {
  std::vector<ReplayedValues> taken;
  for (auto& [key, replay] : replays_) {
    for (const auto& [mask, count] : replay->launches) {
      taken.push_back({replay->launch, replay->graph, count});
      taken.back().launch.mask = mask;
    }
    replay->launches.clear();
  }
  return taken;
}

void CapturedPaths::trim(int64_t now_ns) {
  const std::vector<GraphVersionId> forgotten = GraphRegistry::instance().forget_retired(now_ns);
  const auto is_forgotten = [&](GraphVersionId graph) { return std::ranges::binary_search(forgotten, graph); };
  size_t places = 0;
  for (const auto& [key, replay] : replays_) places += replay->places.size();
  std::erase_if(replays_, [&](const auto& each) { return places > kMaxPlaces || is_forgotten(each.first.graph); });
  std::erase_if(launched_, [&](const auto& each) { return is_forgotten(each.second.graph); });
  readings_.forget(is_forgotten);
  last_ = nullptr;
}

void CapturedPaths::clear() {
  replays_.clear();
  launched_.clear();
  readings_.clear();
  last_ = nullptr;
}

}  // namespace bragg
