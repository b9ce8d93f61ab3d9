// Per-session values of the metrics that a program records itself: one row per (node, metric, element).
#pragma once

#include <bit>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "context/calling_context_tree.h"
#include "context/hash.h"
#include "context/metric_names.h"
#include "data/changing_rows.h"

namespace bragg {

struct ValueKey {
  NodeId node = kRootNode;
  MetricId metric = MetricId::None;
  uint32_t index = 0;   // element of a vector
  uint32_t length = 0;  // 0: a scalar
  friend bool operator==(const ValueKey&, const ValueKey&) = default;
};

struct ValueRow {
  ValueKey key;
  uint64_t count = 0;
  uint64_t bits = 0;  // of an int64 or a double, as the metric's type says
};

[[nodiscard]] inline uint64_t sum_of_bits(uint64_t a, uint64_t b, bool is_float) noexcept {
  if (!is_float) return a + b;
  return std::bit_cast<uint64_t>(std::bit_cast<double>(a) + std::bit_cast<double>(b));
}

// Threads: consumer only.
class ValueTable {
 public:
  // `bits` is the sum of `count` values, of a property the last one.
  void add(const ValueKey& key, uint64_t bits, uint64_t count = 1) {
    const MetricName& metric = metric_at(key.metric);
    const auto [found, is_new] = index_.try_emplace(key, kNone);
    if (is_new) found->second = rows_.append({key});
    ValueRow& row = rows_.change(found->second);
    row.bits = is_new || metric.kind == MetricKind::Property ? bits : sum_of_bits(row.bits, bits, metric.is_float);
    row.count += count;
  }

  // One value, `count` times.
  void add_repeated(const ValueKey& key, uint64_t bits, uint64_t count) {
    const MetricName& metric = metric_at(key.metric);
    if (metric.kind == MetricKind::Property) return add(key, bits, count);
    const auto times = [&] { return std::bit_cast<double>(bits) * static_cast<double>(count); };
    add(key, metric.is_float ? std::bit_cast<uint64_t>(times()) : bits * count, count);
  }

  [[nodiscard]] std::vector<ValueRow> take_changes() { return rows_.take_changes(); }
  [[nodiscard]] const std::vector<ValueRow>& rows() const { return rows_.all(); }

 private:
  struct KeyHash {
    size_t operator()(const ValueKey& key) const noexcept {
      return hash_of(pair_of(key.node, key.metric), pair_of(key.index, key.length));
    }
  };
  const MetricName& metric_at(MetricId id) {
    while (metrics_.size() <= number_of(id))
      metrics_.push_back(MetricNames::instance().at(static_cast<MetricId>(metrics_.size())));
    return metrics_[number_of(id)];
  }

  std::vector<MetricName> metrics_;  // a copy, without the lock
  std::unordered_map<ValueKey, uint32_t, KeyHash> index_;
  ChangingRows<ValueRow> rows_;
};

}  // namespace bragg
