#include "driver/graphs.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "driver/owned.h"
#include "driver/timeline.h"

namespace bragg::fake {
namespace {

std::atomic<uint32_t> last_graph_id{0};

cuda::GraphNodeHandle& append(cuda::GraphHandle& graph, const Operation& operation) {
  const std::lock_guard lock(graph.mutex);
  const uint64_t id = uint64_t{graph.id} << 32 | graph.next_number++;
  return *graph.nodes.emplace_back(new cuda::GraphNodeHandle{&graph, id, operation, nullptr});
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

struct ConditionalNodeParams {
  uint32_t type;
  uint32_t reserved[3];
  uint64_t handle;
  uint32_t condition;
  uint32_t size;
  cuda::Graph* bodies;
  cuda::Context context;
};

}  // namespace

void notify_graph(uint32_t cbid, cuda::Context context, cupti::GraphData data) {
  notify_resource(cbid, context, nullptr, &data);
}

std::unique_ptr<cuda::GraphHandle> new_graph(cuda::Context context) {
  auto graph = std::make_unique<cuda::GraphHandle>();
  graph->id = last_graph_id.fetch_add(1) + 1;
  notify_graph(cupti::resource::kGraphCreated, context, {.graph = graph.get()});
  return graph;
}

cuda::GraphNodeHandle& add_node(cuda::Context context, cuda::GraphHandle& graph, const Operation& operation,
                                std::unique_ptr<cuda::GraphHandle> child) {
  cuda::GraphNodeHandle& node = append(graph, operation);
  node.child = std::move(child);
  notify_graph(cupti::resource::kGraphNodeCreateStarting, context,
               {.graph = &graph, .node = &node, .node_type = operation.type});
  notify_graph(cupti::resource::kGraphNodeCreated, context, {.graph = &graph, .node = &node});  // without the type
  return node;
}

std::unique_ptr<cuda::GraphHandle> clone_graph(cuda::Context context, cuda::GraphHandle& original,
                                               const Cloned& cloned) {
  auto graph = new_graph(context);
  for (const auto& node : original.nodes) {
    auto child = node->child != nullptr ? clone_graph(context, *node->child, cloned) : nullptr;
    cuda::GraphNodeHandle& copy = add_node(context, *graph, node->operation, std::move(child));
    notify_graph(cupti::resource::kGraphNodeCloned, context,
                 {.graph = graph.get(), .original_graph = &original, .node = &copy, .original_node = node.get()});
    cloned(*node, copy);
  }
  return graph;
}

cuda::Graph create_graph(cuda::Context context) { return owned<cuda::GraphHandle>().add(new_graph(context)); }

void announce_destruction(cuda::Context context, cuda::GraphHandle& graph) {
  notify_graph(cupti::resource::kGraphDestroyStarting, context, {.graph = &graph});
  for (const auto& node : graph.nodes) {
    notify_graph(cupti::resource::kGraphNodeDestroyStarting, context, {.graph = &graph, .node = node.get()});
    if (node->child != nullptr) announce_destruction(context, *node->child);
  }
}

cuda::Result destroy_graph(cuda::Context context, cuda::Graph graph) {
  announce_destruction(context, *graph);
  return owned<cuda::GraphHandle>().destroy(graph) ? cuda::Result::Success : cuda::Result::InvalidHandle;
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
    return graph != nullptr ? destroy_graph(call.context, graph) : cuda::Result::InvalidValue;
  });
}

FAKE_CUDA(cuGraphClone)(cuda::Graph* clone, cuda::Graph original) {
  return driver_call(call_site("cuGraphClone"), [&](ApiCall& call) {
    if (clone == nullptr || original == nullptr) return cuda::Result::InvalidValue;
    *clone = owned<cuda::GraphHandle>().add(clone_graph(call.context, *original, [](auto&, auto&) {}));
    notify_graph(cupti::resource::kGraphCloned, call.context, {.graph = *clone, .original_graph = original});
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuGraphAddChildGraphNode)(cuda::GraphNode* node, cuda::Graph graph, const cuda::GraphNode*, size_t,
                                    cuda::Graph child) {
  return driver_call(call_site("cuGraphAddChildGraphNode"), [&](ApiCall& call) {
    if (graph == nullptr || child == nullptr) return cuda::Result::InvalidValue;
    auto copy = clone_graph(call.context, *child, [](auto&, auto&) {});
    *node = &add_node(call.context, *graph, {cuda::GraphNodeType::Graph}, std::move(copy));
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuGraphConditionalHandleCreate)(uint64_t* handle, cuda::Graph graph, cuda::Context, uint32_t, uint32_t) {
  return driver_call(call_site("cuGraphConditionalHandleCreate"), [&](ApiCall&) {
    if (graph == nullptr) return cuda::Result::InvalidValue;
    *handle = graph->id;
    return cuda::Result::Success;
  });
}

// Conditional nodes with one body, whose condition holds once.
FAKE_CUDA(cuGraphAddNode_v2)(cuda::GraphNode* node, cuda::Graph graph, const cuda::GraphNode*, const void*, size_t,
                             ConditionalNodeParams* params) {
  return driver_call(call_site("cuGraphAddNode_v2"), [&](ApiCall& call) {
    if (graph == nullptr || params == nullptr) return cuda::Result::InvalidValue;
    if (params->type != static_cast<uint32_t>(cuda::GraphNodeType::Conditional)) return cuda::Result::NotSupported;
    static cuda::Graph bodies[1];  // the program reads it before its next call
    auto body = new_graph(call.context);
    bodies[0] = body.get();
    params->bodies = bodies;
    *node = &add_node(call.context, *graph, {cuda::GraphNodeType::Conditional}, std::move(body));
    return cuda::Result::Success;
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

}  // namespace bragg::fake
