// Which CUDA graphs are in the middle of a launch, as far as their records tell.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "backends/device_event.h"
#include "data/correlation_map.h"

namespace bragg {

// A launch has as many records as the one before of the same executable graph: they run one after another. Of the first
// launch that is not known, so it is over when nothing has come for longer than its kernels take.
// Threads: one at a time.
class GraphProgress {
 public:
  void note_record(const Launch& launch, const DeviceEvent& event, int64_t now_ns) {
    Graph& graph = graphs_[key_of(launch, event)];
    if (graph.correlation != event.correlation) {
      graph.expected = graph.correlation != CorrelationId::None ? graph.records : 0;
      graph.correlation = event.correlation;
      graph.records = 0;
    }
    ++graph.records;
    graph.came_ns = now_ns;
    graph.longest_ns = std::max(graph.longest_ns, event.end_ns - event.start_ns);
  }

  // No further record of a graph's launch is to be expected.
  [[nodiscard]] bool is_complete(int64_t now_ns) const {
    return std::ranges::all_of(graphs_, [&](const auto& each) {
      const Graph& graph = each.second;
      return graph.records == graph.expected || now_ns >= patience_end(graph);
    });
  }

  void trim() {
    if (graphs_.size() > kMaxGraphs) graphs_.clear();
  }
  void clear() { graphs_.clear(); }

 private:
  static constexpr size_t kMaxGraphs = 1u << 16;
  static constexpr int64_t kLeastNs = 100'000'000;  // CUPTI's own threads take some ms to bring a record
  static constexpr int64_t kMostNs = 5'000'000'000;

  struct Graph {
    CorrelationId correlation = CorrelationId::None;  // of the launch that runs, or ran last
    uint64_t records = 0;                             // of it
    uint64_t expected = 0;                            // as many had the one before; 0: not known
    int64_t came_ns = 0;
    int64_t longest_ns = 0;
  };
  [[nodiscard]] static uint64_t key_of(const Launch& launch, const DeviceEvent& event) {
    return pair_of(launch.graph, event.graph);
  }
  [[nodiscard]] static int64_t patience_end(const Graph& graph) {
    return graph.came_ns + std::clamp(3 * graph.longest_ns, kLeastNs, kMostNs);
  }

  std::unordered_map<uint64_t, Graph> graphs_;
};

}  // namespace bragg
