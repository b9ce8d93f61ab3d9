// What the opaque handles of the driver API point to.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "link.h"

namespace bragg::cuda {

struct FunctionHandle {
  std::string name;
  std::atomic<uint64_t> duration_ns{0};  // 0: Knob::KernelNs
  std::atomic<uint32_t> launches{0};
  uint64_t cubin_crc = 0;
};

struct ModuleHandle {
  uint64_t cubin_crc = 0;
};

struct StreamHandle {
  ContextHandle* context;
  uint32_t id;  // as CUPTI shows it
  std::mutex mutex;
  uint64_t tail_ns = 0;            // when the work queued so far is complete
  GraphHandle* capture = nullptr;  // not null: work becomes nodes of this graph
  bool is_capture_invalid = false;
};

struct ContextHandle {
  uint32_t device;
  uint32_t id;
  std::mutex mutex;  // guards `streams`
  StreamHandle default_stream;
  std::vector<std::unique_ptr<StreamHandle>> streams;
};

struct EventHandle {
  std::mutex mutex;
  uint64_t time_ns = 0;
  GraphHandle* capture = nullptr;  // recorded in a stream that was being captured
};

struct GraphNodeHandle {
  GraphHandle* graph;
  uint64_t id;  // id of its graph in the upper half; changes when the node moves into an executable graph
  fake::Operation operation;
  std::unique_ptr<GraphHandle> child;  // of child graph nodes and conditional nodes
};

struct GraphHandle {
  uint32_t id;
  std::mutex mutex;
  uint32_t next_number = 0;  // of its next node
  std::vector<std::unique_ptr<GraphNodeHandle>> nodes;
};

// Runs a copy of the graph it was made from, as the real driver does; nodes of graphs within are among its own.
struct GraphExecHandle {
  struct Node {
    GraphNodeHandle* node;
    uint64_t id;      // of records
    uint64_t source;  // id of the node it was made from
    bool is_conditional;
  };
  std::unique_ptr<GraphHandle> graph;
  uint32_t source_id;
  uint32_t internal_id;  // of a second copy, of which nothing but its creation and destruction is seen
  std::vector<Node> nodes;
};

}  // namespace bragg::cuda
