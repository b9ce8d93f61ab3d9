#include "backends/graph_registry.h"

#include <algorithm>
#include <set>

namespace bragg {
namespace {

constexpr CapturedNode kUnknownNode{{NodeId::None, NodeId::None}};

constexpr uint32_t number_in_graph(GraphNodeId node) { return static_cast<uint32_t>(number_of(node)); }

auto at_or_after(auto& nodes, GraphNodeId id) {
  return std::lower_bound(nodes.begin(), nodes.end(), id,
                          [](const auto& node, GraphNodeId each) { return node.first < each; });
}

}  // namespace

void GraphNodes::set(GraphNodeId id, const CapturedNode& node) {
  const auto place = at_or_after(nodes_, id);
  if (place != nodes_.end() && place->first == id) {
    place->second = node;
  } else {
    nodes_.insert(place, {id, node});
  }
}

const CapturedNode* GraphNodes::find(GraphNodeId id) const {
  const auto place = at_or_after(nodes_, id);
  return place != nodes_.end() && place->first == id ? &place->second : nullptr;
}

GraphRegistry& GraphRegistry::instance() {
  static GraphRegistry& registry = *new GraphRegistry;  // callbacks may come until the process is gone
  return registry;
}

// Graphs --------------------------------------------------------------------------------------------------------------

GraphRegistry::Graph& GraphRegistry::graph_of(GraphId id) {
  while (graph_nodes_ >= kMaxNodes && graphs_.begin()->first != id) erase(graphs_.begin());
  return graphs_[id];
}

void GraphRegistry::erase(std::map<GraphId, Graph>::iterator graph) {
  graph_nodes_ -= graph->second.nodes.size();
  graphs_.erase(graph);
}

CapturedNode GraphRegistry::node_of(GraphNodeId id) const {
  const auto graph = graphs_.find(graph_id(id));
  const CapturedNode* node = graph != graphs_.end() ? graph->second.nodes.find(id) : nullptr;
  return node != nullptr ? *node : kUnknownNode;
}

void GraphRegistry::add_node(GraphId graph, GraphNodeId id, const CapturedNode& node) {
  const std::lock_guard lock(mutex_);
  Graph& to = graph_of(graph);
  graph_nodes_ -= to.nodes.size();
  to.nodes.set(id, node);
  graph_nodes_ += to.nodes.size();
}

void GraphRegistry::copy_node(GraphNodeId original, GraphId graph, GraphNodeId id) {
  add_node(graph, id, [&] {
    const std::lock_guard lock(mutex_);
    return node_of(original);
  }());
  const std::lock_guard lock(mutex_);
  const auto from = graphs_.find(graph_id(original));
  if (Graph& to = graph_of(graph); !to.is_copy && from != graphs_.end()) to.values = from->second.values;
  graph_of(graph).is_copy = true;
}

void GraphRegistry::add_values(GraphId graph, std::vector<CapturedValue> values) {
  if (values.empty()) return;
  const std::lock_guard lock(mutex_);
  auto& all = graph_of(graph).values;
  all.insert(all.end(), values.begin(), values.end());
}

void GraphRegistry::forget_graph(GraphId graph) {
  const std::lock_guard lock(mutex_);
  if (const auto found = graphs_.find(graph); found != graphs_.end()) erase(found);
}

// Executable graphs ---------------------------------------------------------------------------------------------------

GraphVersion GraphRegistry::version_from(GraphId graph, const Pairs& pairs) const {
  GraphVersion version;
  version.source = graph;
  std::set<GraphId> sources{graph};
  for (const auto& [original, id] : pairs) {
    version.exec = graph_id(id);
    const CapturedNode node = node_of(original);
    version.nodes.set(id, node);
    if (node.reading != ReadingId::None) version.readings.push_back(node.reading);
    version.originals[id] = original;
    sources.insert(graph_id(original));
  }
  for (const GraphId source : sources)
    if (const auto found = graphs_.find(source); found != graphs_.end())
      version.values.insert(version.values.end(), found->second.values.begin(), found->second.values.end());
  return version;
}

// The driver tells only the kernels that changed. These also show which graph has taken which one's place.
GraphRegistry::Pairs GraphRegistry::complete(const GraphVersion& before, GraphId graph, const Pairs& told) const {
  std::unordered_map<GraphNodeId, GraphNodeId> told_of;
  std::unordered_map<GraphId, GraphId> successors{{before.source, graph}};
  for (const auto& [original, id] : told) {
    told_of[id] = original;
    if (const auto found = before.originals.find(id); found != before.originals.end())
      successors[graph_id(found->second)] = graph_id(original);
  }
  std::unordered_map<GraphId, size_t> sizes;
  for (const auto& [id, original] : before.originals) ++sizes[graph_id(original)];
  const auto is_alike = [&](GraphId old, GraphId successor) {
    const auto found = graphs_.find(successor);
    return found != graphs_.end() && found->second.nodes.size() == sizes.at(old);
  };
  Pairs pairs;
  for (const auto& [id, original] : before.originals) {
    const auto exact = told_of.find(id);
    const auto successor = successors.find(graph_id(original));
    GraphNodeId now = GraphNodeId::None;  // not known
    if (exact != told_of.end()) {
      now = exact->second;
    } else if (successor != successors.end() && is_alike(successor->first, successor->second)) {
      now = node_id(successor->second, number_in_graph(original));
    }
    pairs.emplace_back(now, id);
  }
  return pairs;
}

GraphVersionId GraphRegistry::keep(GraphVersion version) {
  last_version_ = GraphVersionId{number_of(last_version_) + 1};
  versions_.emplace(last_version_, std::make_shared<const GraphVersion>(std::move(version)));
  return last_version_;
}

void GraphRegistry::instantiated(ExecHandle exec, GraphId graph, const Pairs& pairs, bool is_traceable) {
  const std::lock_guard lock(mutex_);
  execs_[exec] = {keep(version_from(graph, pairs)), is_traceable};
}

void GraphRegistry::updated(ExecHandle exec, GraphId graph, const Pairs& pairs, int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  const auto found = execs_.find(exec);
  if (found == execs_.end()) return;  // not known before, and not after
  GraphVersionId& current = found->second.version;
  GraphVersion version = version_from(graph, complete(*versions_.at(current), graph, pairs));
  version.is_update = true;
  retire(current, now_ns);
  current = keep(std::move(version));
}

void GraphRegistry::destroyed(ExecHandle exec, int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  const auto found = execs_.find(exec);
  if (found == execs_.end()) return;
  retire(found->second.version, now_ns);
  execs_.erase(found);
}

GraphRegistry::Launchable GraphRegistry::find_exec(ExecHandle exec) {
  const std::lock_guard lock(mutex_);
  const auto found = execs_.find(exec);
  return found != execs_.end() ? found->second : Launchable{};
}

void GraphRegistry::retire(GraphVersionId version, int64_t now_ns) {
  retired_.push_back({version, now_ns});
  retired_nodes_ += versions_.at(version)->nodes.size();
}

std::shared_ptr<const GraphVersion> GraphRegistry::find(GraphVersionId version) {
  const std::lock_guard lock(mutex_);
  const auto found = versions_.find(version);
  return found != versions_.end() ? found->second : nullptr;
}

std::vector<GraphVersionId> GraphRegistry::forget_retired(int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  std::vector<GraphVersionId> forgotten;
  while (!retired_.empty() &&
         (now_ns - retired_.front().since_ns > kRetirementNs || retired_nodes_ > kMaxRetiredNodes)) {
    const GraphVersionId version = retired_.front().version;
    retired_.pop_front();
    retired_nodes_ -= versions_.at(version)->nodes.size();
    versions_.erase(version);
    forgotten.push_back(version);
  }
  std::ranges::sort(forgotten);
  return forgotten;
}

void GraphRegistry::clear() {
  const std::lock_guard lock(mutex_);
  graphs_.clear();
  execs_.clear();
  versions_.clear();
  retired_.clear();
  graph_nodes_ = retired_nodes_ = 0;
}

}  // namespace bragg
