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
};

struct ModuleHandle {};

struct StreamHandle {
  ContextHandle* context;
  uint32_t id;  // as CUPTI shows it
  std::mutex mutex;
  uint64_t tail_ns = 0;            // when the work queued so far is complete
  GraphHandle* capture = nullptr;  // not null: work becomes nodes of this graph
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
  uint64_t id;  // id of its graph in the upper half
  fake::Operation operation;
  GraphNodeHandle* original = nullptr;
};

struct GraphHandle {
  uint32_t id;
  GraphHandle* original = nullptr;
  std::mutex mutex;
  std::vector<std::unique_ptr<GraphNodeHandle>> nodes;
};

// Runs a copy of the graph it was made from, as the real driver does.
struct GraphExecHandle {
  std::unique_ptr<GraphHandle> graph;
  uint32_t source_id;
  std::vector<uint64_t> source_nodes;
};

}  // namespace bragg::cuda
