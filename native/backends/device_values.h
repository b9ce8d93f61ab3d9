// Metric values that live in a device's memory: where they are, where they go, and what came.
#pragma once

#include <cstdint>

#include "context/calling_context_tree.h"
#include "context/metric_names.h"

namespace bragg {

// The numbers are those of bragg_core.h.
enum class Dtype : uint32_t { F16, BF16, F32, F64, I8, I16, I32, I64, U8, Bool };

// Numbers in a device's memory, one behind the other.
struct DeviceArray {
  uint64_t address;
  Dtype dtype;
  uint32_t length;  // 0: a scalar
  int64_t stride;   // in elements
};

// Where values of one array go: a metric at a context.
struct ValueTarget {
  NodeId shadow = kRootNode;
  NodeId python = kRootNode;
  uint16_t mask = 0;  // sessions that were active
  MetricId metric = MetricId::None;
  uint32_t length = 0;  // 0: a scalar
  bool is_float = true;
  bool is_property = false;
  ReadingId reading = ReadingId::None;  // not None: read by a graph, for each of its launches
  friend bool operator==(const ValueTarget&, const ValueTarget&) = default;
};

// Values that have come: one, or the sum of `count`, of a property the last one.
struct ArrivedValue {
  ValueTarget target;
  uint32_t index = 0;  // element of the array
  uint64_t count = 1;
  uint64_t bits = 0;
  bool is_unordered = false;  // the consumer was behind: it is not known which came before which
};

}  // namespace bragg
