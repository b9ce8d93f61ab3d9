#include "driver/graphs.h"

#include <atomic>
#include <mutex>

#include "driver/owned.h"
#include "driver/timeline.h"
#include "driver/value_kernel.h"

namespace bragg::fake {
namespace {

std::atomic<uint32_t> last_graph_id{0};

void notify(uint32_t cbid, cuda::Context context, cupti::GraphData data) {
  notify_resource(cbid, context, nullptr, &data);
}

std::unique_ptr<cuda::GraphHandle> new_graph(cuda::GraphHandle* original) {
  auto graph = std::make_unique<cuda::GraphHandle>();
  graph->id = last_graph_id.fetch_add(1) + 1;
  graph->original = original;
  return graph;
}

cuda::GraphNodeHandle& append(cuda::GraphHandle& graph, const Operation& operation, cuda::GraphNodeHandle* original) {
  const std::lock_guard lock(graph.mutex);
  const uint64_t id = uint64_t{graph.id} << 32 | graph.nodes.size();
  return *graph.nodes.emplace_back(new cuda::GraphNodeHandle{&graph, id, operation, original});
}

std::unique_ptr<cuda::GraphExecHandle> instantiate(cuda::Context context, cuda::GraphHandle& source) {
  notify(cupti::resource::kGraphExecCreateStarting, context, {.graph = &source});
  auto exec = std::make_unique<cuda::GraphExecHandle>();
  exec->graph = new_graph(&source);
  exec->source_id = source.id;
  notify(cupti::resource::kGraphCloned, context, {.graph = exec->graph.get(), .original_graph = &source});
  for (const auto& node : source.nodes) {
    cuda::GraphNodeHandle& clone = append(*exec->graph, node->operation, node.get());
    exec->source_nodes.push_back(node->id);
    notify(cupti::resource::kGraphNodeCloned, context,
           {.graph = exec->graph.get(),
            .original_graph = &source,
            .node = &clone,
            .original_node = node.get(),
            .node_type = clone.operation.type});
  }
  notify(cupti::resource::kGraphExecCreated, context, {.graph = &source, .graph_exec = exec.get()});
  return exec;
}

// The nodes run back to back, as one piece of the stream's queue, and share the correlation id of the launch.
cuda::Result launch(ApiCall& call, cuda::GraphExecHandle& exec, cuda::StreamHandle& stream) {
  const Tool* tool = attached_tool.load(std::memory_order_acquire);
  const Place place = place_of(stream);
  const std::lock_guard lock(exec.graph->mutex);
  std::vector<Span> spans;
  spans.reserve(exec.graph->nodes.size());
  {
    const std::lock_guard queue(stream.mutex);
    for (const auto& node : exec.graph->nodes) spans.push_back(enqueue(stream, duration_ns(node->operation)));
  }
  for (const auto& node : exec.graph->nodes)
    if (is_value_kernel(node->operation)) read_values(node->operation.reading);
  if (tool == nullptr || spans.empty()) return cuda::Result::Success;
  for (size_t i = 0; i < spans.size(); ++i) {
    const cuda::GraphNodeHandle& node = *exec.graph->nodes[i];
    if (node.operation.type == cuda::GraphNodeType::Empty) continue;
    const GraphOrigin origin{exec.graph->id, node.id, exec.source_id, exec.source_nodes[i]};
    tool->executed({node.operation, call.correlation, place, spans[i], origin});
  }
  tool->graph_executed({call.correlation, place, {spans.front().start_ns, spans.back().end_ns}, exec.graph->id});
  return cuda::Result::Success;
}

struct KernelNodeParams {
  cuda::Function function;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t dynamic_shared_bytes;
  void** arguments;
  void** extra;
  void* kernel;
  cuda::Context context;
};

struct MemcpyEnd {
  size_t offset_bytes, row, slice, level;
  uint32_t memory_type;  // 1 host, 2 device
  void* host;
  cuda::DevicePointer device;
  void* array;
  void* reserved;
  size_t pitch_bytes, height;
};

struct MemcpyNodeParams {
  MemcpyEnd source;
  MemcpyEnd target;
  size_t width_bytes, height, depth;
};

struct MemsetNodeParams {
  cuda::DevicePointer target;
  size_t pitch_bytes;
  uint32_t value;
  uint32_t element_bytes;
  size_t width;
  size_t height;
};

}  // namespace

cuda::Graph create_graph(cuda::Context context) {
  const cuda::Graph graph = owned<cuda::GraphHandle>().add(new_graph(nullptr));
  notify(cupti::resource::kGraphCreated, context, {.graph = graph});
  return graph;
}

cuda::GraphNodeHandle& add_node(cuda::Context context, cuda::GraphHandle& graph, const Operation& operation) {
  notify(cupti::resource::kGraphNodeCreateStarting, context, {.graph = &graph, .node_type = operation.type});
  cuda::GraphNodeHandle& node = append(graph, operation, nullptr);
  notify(cupti::resource::kGraphNodeCreated, context, {.graph = &graph, .node = &node, .node_type = operation.type});
  return node;
}

FAKE_CUDA(cuGraphCreate)(cuda::Graph* graph, uint32_t) {
  return driver_call(call_site("cuGraphCreate"), [&](ApiCall& call) {
    if (graph == nullptr) return cuda::Result::InvalidValue;
    *graph = create_graph(call.context);
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuGraphDestroy)(cuda::Graph graph) {
  return driver_call(call_site("cuGraphDestroy"), [&](ApiCall& call) {
    if (graph == nullptr) return cuda::Result::InvalidValue;
    notify(cupti::resource::kGraphDestroyStarting, call.context, {.graph = graph});
    return owned<cuda::GraphHandle>().destroy(graph) ? cuda::Result::Success : cuda::Result::InvalidHandle;
  });
}

FAKE_CUDA(cuGraphAddKernelNode_v2)(cuda::GraphNode* node, cuda::Graph graph, const cuda::GraphNode*, size_t,
                                   const KernelNodeParams* params) {
  return driver_call(call_site("cuGraphAddKernelNode_v2"), [&](ApiCall& call) {
    if (graph == nullptr || params == nullptr || params->function == nullptr) return cuda::Result::InvalidValue;
    Operation operation{cuda::GraphNodeType::Kernel, params->function, params->function->name.c_str()};
    std::copy_n(params->grid, 3, operation.shape.grid);
    std::copy_n(params->block, 3, operation.shape.block);
    operation.shape.dynamic_shared_bytes = params->dynamic_shared_bytes;
    *node = &add_node(call.context, *graph, operation);
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuGraphAddMemcpyNode)(cuda::GraphNode* node, cuda::Graph graph, const cuda::GraphNode*, size_t,
                                const MemcpyNodeParams* params, cuda::Context) {
  return driver_call(call_site("cuGraphAddMemcpyNode"), [&](ApiCall& call) {
    if (graph == nullptr || params == nullptr) return cuda::Result::InvalidValue;
    const bool from_host = params->source.memory_type == 1, to_host = params->target.memory_type == 1;
    Operation operation{cuda::GraphNodeType::Memcpy};
    operation.copy_kind = from_host ? cupti::CopyKind::HostToDevice
                          : to_host ? cupti::CopyKind::DeviceToHost
                                    : cupti::CopyKind::DeviceToDevice;
    operation.source_kind = from_host ? cupti::MemoryKind::Pageable : cupti::MemoryKind::Device;
    operation.target_kind = to_host ? cupti::MemoryKind::Pageable : cupti::MemoryKind::Device;
    operation.size_bytes = params->width_bytes * params->height * params->depth;
    *node = &add_node(call.context, *graph, operation);
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuGraphAddMemsetNode)(cuda::GraphNode* node, cuda::Graph graph, const cuda::GraphNode*, size_t,
                                const MemsetNodeParams* params, cuda::Context) {
  return driver_call(call_site("cuGraphAddMemsetNode"), [&](ApiCall& call) {
    if (graph == nullptr || params == nullptr) return cuda::Result::InvalidValue;
    Operation operation{cuda::GraphNodeType::Memset};
    operation.target_kind = cupti::MemoryKind::Device;
    operation.value = params->value;
    operation.size_bytes = params->width * params->element_bytes * params->height;
    *node = &add_node(call.context, *graph, operation);
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuGraphAddEmptyNode)(cuda::GraphNode* node, cuda::Graph graph, const cuda::GraphNode*, size_t) {
  return driver_call(call_site("cuGraphAddEmptyNode"), [&](ApiCall& call) {
    if (graph == nullptr) return cuda::Result::InvalidValue;
    *node = &add_node(call.context, *graph, Operation{});
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuGraphInstantiateWithFlags)(cuda::GraphExec* exec, cuda::Graph graph, uint64_t) {
  return driver_call(call_site("cuGraphInstantiateWithFlags"), [&](ApiCall& call) {
    if (exec == nullptr || graph == nullptr) return cuda::Result::InvalidValue;
    *exec = owned<cuda::GraphExecHandle>().add(instantiate(call.context, *graph));
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuGraphExecDestroy)(cuda::GraphExec exec) {
  return driver_call(call_site("cuGraphExecDestroy"), [&](ApiCall& call) {
    if (exec == nullptr) return cuda::Result::InvalidValue;
    notify(cupti::resource::kGraphExecDestroyStarting, call.context, {.graph_exec = exec});
    return owned<cuda::GraphExecHandle>().destroy(exec) ? cuda::Result::Success : cuda::Result::InvalidHandle;
  });
}

FAKE_CUDA(cuGraphLaunch)(cuda::GraphExec exec, cuda::Stream stream) {
  struct {
    cuda::GraphExec exec;
    cuda::Stream stream;
  } const params{exec, stream};
  return driver_call(call_site("cuGraphLaunch"), {nullptr, &params}, [&](ApiCall& call) {
    if (exec == nullptr) return cuda::Result::InvalidValue;
    if (call.context == nullptr) return cuda::Result::InvalidContext;
    return launch(call, *exec, resolve(call.context, stream));
  });
}

}  // namespace bragg::fake
