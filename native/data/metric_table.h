// Per-session metrics: one row per (node, group) that saw anything.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "context/calling_context_tree.h"
#include "data/changing_rows.h"
#include "data/per_id.h"

namespace bragg {

// The numbers are part of the capture format (native/data/CAPTURE.md).
enum class MetricGroup : uint32_t { Device = 1, Host = 2, Sample = 3, Marker = 4, Wait = 5, Thread = 6 };

struct MetricRow {
  NodeId node = kRootNode;
  MetricGroup group = MetricGroup::Device;
  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t min_ns = std::numeric_limits<uint64_t>::max();
  uint64_t max_ns = 0;
  uint64_t bytes = 0;
};

// Threads: consumer only.
class MetricTable {
 public:
  void add(NodeId node, MetricGroup group, uint64_t duration_ns, uint64_t bytes = 0, uint64_t times = 1) {
    uint32_t& known = index_[static_cast<size_t>(group) - 1][node];
    if (known == kNone) known = rows_.append({node, group});
    MetricRow& row = rows_.change(known);
    row.count += times;
    row.total_ns += duration_ns;
    row.min_ns = std::min(row.min_ns, duration_ns);
    row.max_ns = std::max(row.max_ns, duration_ns);
    row.bytes += bytes;
  }

  [[nodiscard]] std::vector<MetricRow> take_changes() { return rows_.take_changes(); }
  [[nodiscard]] const std::vector<MetricRow>& rows() const { return rows_.all(); }

 private:
  struct RowOfNode : PerId<NodeId, uint32_t> {
    RowOfNode() : PerId(kNone) {}
  };
  std::array<RowOfNode, 6> index_;  // by group
  ChangingRows<MetricRow> rows_;
};

}  // namespace bragg
