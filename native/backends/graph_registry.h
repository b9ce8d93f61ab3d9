// What CUDA graphs consist of, and where each of their nodes was captured.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "context/hash.h"
#include "context/stream_captures.h"

namespace bragg {

[[nodiscard]] constexpr GraphId graph_id(GraphNodeId node) { return static_cast<GraphId>(number_of(node) >> 32); }
[[nodiscard]] constexpr GraphNodeId node_id(GraphId graph, uint32_t number) {
  return GraphNodeId{pair_of(graph, number)};
}

struct CapturedNode {
  ContextNodes nodes;                   // where it was captured; None: not known, it was before anything recorded
  StringId name = StringId::None;       // of its kernel, unless it goes by its symbol
  ReadingId reading = ReadingId::None;  // not None: a kernel of ours, which reads values
  [[nodiscard]] bool is_known() const { return nodes.shadow != NodeId::None; }
};

// Nodes by id. Ids come in ascending order, except those of nested graphs.
class GraphNodes {
 public:
  void set(GraphNodeId id, const CapturedNode& node);
  [[nodiscard]] const CapturedNode* find(GraphNodeId id) const;
  [[nodiscard]] size_t size() const { return nodes_.size(); }
  [[nodiscard]] const std::vector<std::pair<GraphNodeId, CapturedNode>>& in_order() const { return nodes_; }

 private:
  std::vector<std::pair<GraphNodeId, CapturedNode>> nodes_;
};

// What an executable graph runs, from its instantiation or an update to the next one. It never changes.
struct GraphVersion {
  GraphId exec = GraphId::None;    // as device records have it
  GraphId source = GraphId::None;  // made from, or updated by
  bool is_update = false;          // else an instantiation
  GraphNodes nodes;
  std::unordered_map<GraphNodeId, GraphNodeId> originals;  // of `nodes`: those of the source and of graphs within
  std::vector<CapturedValue> values;                       // of each launch
  std::vector<ReadingId> readings;                         // of `nodes`
};

using ExecHandle = const void*;  // the driver's CUgraphExec

// Threads: any; one mutex. Called when graphs are built, once a graph launch, and by the consumer for what it has not
// seen yet.
class GraphRegistry {
 public:
  // Most nodes of graphs that were neither instantiated nor destroyed, 24 B each: beyond it the oldest are forgotten.
  static constexpr size_t kMaxNodes = 1u << 20;
  // Versions that are no longer launched wait for their last records: at most this long, and this many nodes.
  static constexpr int64_t kRetirementNs = 30'000'000'000;
  static constexpr size_t kMaxRetiredNodes = 1u << 20;

  static GraphRegistry& instance();

  // Graphs.
  void add_node(GraphId graph, GraphNodeId id, const CapturedNode& node);
  void copy_node(GraphNodeId original, GraphId graph, GraphNodeId id);
  void add_values(GraphId graph, std::vector<CapturedValue> values);
  void forget_graph(GraphId graph);

  // Executable graphs. `pairs`: nodes of `graph` or of graphs within, and the nodes that run in their place.
  using Pairs = std::vector<std::pair<GraphNodeId, GraphNodeId>>;
  // `is_traceable`: it was made while whole graphs were recorded.
  void instantiated(ExecHandle exec, GraphId graph, const Pairs& pairs, bool is_traceable);
  // A node that is in no pair is like the one of the same number, if the graphs are alike; else it is not known.
  void updated(ExecHandle exec, GraphId graph, const Pairs& pairs, int64_t now_ns);
  void destroyed(ExecHandle exec, int64_t now_ns);
  struct Launchable {
    GraphVersionId version = GraphVersionId::None;  // None: instantiated before anything recorded
    bool is_traceable = false;
  };
  [[nodiscard]] Launchable find_exec(ExecHandle exec);

  // Consumer.
  [[nodiscard]] std::shared_ptr<const GraphVersion> find(GraphVersionId version);
  // Forgets the versions whose last records must have come, and tells which they were, in ascending order.
  [[nodiscard]] std::vector<GraphVersionId> forget_retired(int64_t now_ns);

  void clear();
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  struct Graph {
    GraphNodes nodes;
    std::vector<CapturedValue> values;
    bool is_copy = false;
  };
  struct Retired {
    GraphVersionId version;
    int64_t since_ns;
  };
  [[nodiscard]] Graph& graph_of(GraphId id);
  void erase(std::map<GraphId, Graph>::iterator graph);
  [[nodiscard]] CapturedNode node_of(GraphNodeId id) const;
  [[nodiscard]] GraphVersion version_from(GraphId graph, const Pairs& pairs) const;
  [[nodiscard]] Pairs complete(const GraphVersion& before, GraphId graph, const Pairs& told) const;
  [[nodiscard]] GraphVersionId keep(GraphVersion version);
  void retire(GraphVersionId version, int64_t now_ns);

  std::mutex mutex_;
  std::map<GraphId, Graph> graphs_;  // oldest first
  size_t graph_nodes_ = 0;
  std::unordered_map<ExecHandle, Launchable> execs_;
  std::unordered_map<GraphVersionId, std::shared_ptr<const GraphVersion>> versions_;
  GraphVersionId last_version_ = GraphVersionId::None;
  std::deque<Retired> retired_;  // in the order they were
  size_t retired_nodes_ = 0;
};

}  // namespace bragg
