// What the fake driver and the fake CUPTI say to each other. The driver exports `bragg_fake_driver`; a CUPTI that is
// used looks it up and attaches its Tool.
#pragma once

#include <cstdint>

#include "backends/cuda/driver/cuda_abi.h"
#include "backends/cuda/driver/cupti_abi.h"
#include "backends/cuda/values/value_kernel.h"

#define BRAGG_FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace bragg::fake {

// What cuptiGetCubinCrc gives: FNV-1a.
[[nodiscard]] inline uint64_t cubin_crc(const void* cubin, size_t size_bytes) noexcept {
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t i = 0; i < size_bytes; ++i) hash = (hash ^ static_cast<const uint8_t*>(cubin)[i]) * 0x100000001B3u;
  return hash;
}

// One call of the driver or the runtime API, from its ENTER to its EXIT.
struct ApiCall {
  cupti::Domain domain = cupti::Domain::DriverApi;
  uint32_t cbid = 0;
  const char* name = nullptr;
  const char* symbol = nullptr;  // kernel launches: the mangled name of the kernel
  const void* params = nullptr;
  cuda::Context context = nullptr;
  uint32_t context_uid = 0;
  cuda::Result result{};
  // Kept by the tool.
  uint32_t correlation = 0;
  uint64_t correlation_data[8] = {};  // of each subscriber
  uint64_t start_ns = 0;
};

struct KernelShape {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster[3];  // 0: none
  uint32_t dynamic_shared_bytes;
};

// What a launch, copy or set does; also the payload of a graph node.
struct Operation {
  cuda::GraphNodeType type = cuda::GraphNodeType::Empty;
  cuda::Function function = nullptr;   // kernels
  const char* name = nullptr;          // kernels
  uint64_t cubin_crc = 0;              // kernels: 0: their module is not a cubin
  KernelShape shape{};                 // kernels
  cupti::CopyKind copy_kind{};         // copies
  cupti::MemoryKind source_kind{};     // copies
  cupti::MemoryKind target_kind{};     // copies and sets
  bool asynchronous = false;           // copies and sets
  uint32_t value = 0;                  // sets
  uint64_t size_bytes = 0;             // copies and sets
  value_kernel::Parameters reading{};  // the kernel of bragg's own
};

struct Place {
  uint32_t device;
  uint32_t context;
  uint32_t stream;
};

struct Span {
  uint64_t start_ns;
  uint64_t end_ns;
};

// Ids of the executable graph and node an operation ran for, and of those they were made from. 0: no graph.
struct GraphOrigin {
  uint32_t graph = 0;
  uint64_t node = 0;
  uint32_t source_graph = 0;
  uint64_t source_node = 0;
};

// An operation that has its place on the virtual GPU's timeline: it is complete once the clock has reached span.end_ns.
struct Execution {
  const Operation& operation;
  uint32_t correlation;
  Place place;
  Span span;
  GraphOrigin origin;
};

// A whole graph launch.
struct GraphRun {
  uint32_t correlation;
  Place place;
  Span span;
  uint32_t graph;
};

enum class DriverState : uint32_t { NotInitialized, Ready, Forked };

// Implemented by the fake CUPTI, called by the driver. Threads: any.
struct Tool {
  void (*enter)(ApiCall& call);
  void (*exit)(ApiCall& call);
  void (*executed)(const Execution& execution);
  void (*graph_instantiated)(uint32_t graph);
  void (*graph_executed)(const GraphRun& run);
  void (*resource)(uint32_t cbid, const cupti::ResourceData& data);
  void (*set_knob)(const char* name, int64_t value);
  void (*set_failure)(const char* call, uint32_t result);
};

// Implemented by the fake driver, called by CUPTI. Threads: any.
struct Driver {
  bool (*attach)(const Tool* tool);  // false: another copy of CUPTI is attached
  DriverState (*state)();
  uint64_t (*now_ns)();
  uint64_t (*all_placed_until_ns)();  // the tool has heard of all work that begins earlier
  void (*jump_to_end_of_work)();
  bool (*clock_is_real)();
  uint32_t (*context_device)(cuda::Context context);
  uint32_t (*context_id)(cuda::Context context);
  uint32_t (*stream_id)(cuda::Context context, cuda::Stream stream);
  uint32_t (*graph_id)(cuda::Graph graph);
  uint32_t (*graph_exec_id)(cuda::GraphExec graph_exec);
  uint64_t (*graph_node_id)(cuda::GraphNode node);
};

using GetDriver = const Driver*();  // the symbol bragg_fake_driver

}  // namespace bragg::fake
