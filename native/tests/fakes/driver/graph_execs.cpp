// Executable graphs: instantiation, update, launch.
#include <mutex>
#include <unordered_map>
#include <vector>

#include "driver/graphs.h"
#include "driver/owned.h"
#include "driver/timeline.h"
#include "driver/value_kernel.h"

namespace bragg::fake {
namespace {

using ExecNode = cuda::GraphExecHandle::Node;

// Copies and sets get a new node; records show the id of the old one.
void replace_copies(cuda::Context context, cuda::GraphHandle& graph) {
  for (size_t i = 0, count = graph.nodes.size(); i < count; ++i) {
    if (graph.nodes[i]->operation.type != cuda::GraphNodeType::Memcpy) continue;
    add_node(context, graph, {});
    notify_graph(cupti::resource::kGraphNodeDestroyStarting, context, {.graph = &graph, .node = graph.nodes[i].get()});
  }
}

// The nodes of graphs within move into the executable graph, where they get its next numbers.
void take_in(cuda::Context context, cuda::GraphExecHandle& exec, cuda::GraphHandle& within, bool is_conditional,
             const std::unordered_map<const cuda::GraphNodeHandle*, uint64_t>& sources) {
  std::vector<std::unique_ptr<cuda::GraphNodeHandle>> nodes = std::move(within.nodes);
  const bool is_top = &within == exec.graph.get();
  if (!is_top) notify_graph(cupti::resource::kGraphDestroyStarting, context, {.graph = &within});
  for (const auto& node : nodes)
    if (!is_top) node->id = uint64_t{exec.graph->id} << 32 | exec.graph->next_number++;
  for (auto& node : nodes) {
    const auto source = sources.find(node.get());
    const bool is_replaced = node->operation.type == cuda::GraphNodeType::Graph;
    if (is_replaced)
      notify_graph(cupti::resource::kGraphNodeDestroyStarting, context, {.graph = &within, .node = node.get()});
    exec.nodes.push_back({node.get(), node->id, source != sources.end() ? source->second : 0, is_conditional});
    const bool is_condition = node->operation.type == cuda::GraphNodeType::Conditional;
    if (node->child != nullptr) take_in(context, exec, *node->child, is_conditional || is_condition, sources);
    exec.graph->nodes.push_back(std::move(node));
  }
}

std::unique_ptr<cuda::GraphExecHandle> instantiate(cuda::Context context, cuda::GraphHandle& source) {
  auto exec = std::make_unique<cuda::GraphExecHandle>();
  std::unordered_map<const cuda::GraphNodeHandle*, uint64_t> sources;
  exec->graph =
      clone_graph(context, source, [&](const auto& original, const auto& copy) { sources[&copy] = original.id; });
  exec->source_id = source.id;
  exec->internal_id = new_graph(context)->id;
  notify_graph(cupti::resource::kGraphExecCreateStarting, context, {.graph = &source, .graph_exec = exec.get()});
  take_in(context, *exec, *exec->graph, false, sources);
  replace_copies(context, *exec->graph);
  if (const Tool* tool = attached_tool.load(std::memory_order_acquire)) tool->graph_instantiated(exec->graph->id);
  notify_graph(cupti::resource::kGraphExecCreated, context, {.graph = &source, .graph_exec = exec.get()});
  return exec;
}

void flatten(const cuda::GraphHandle& graph, std::vector<cuda::GraphNodeHandle*>& nodes) {
  for (const auto& node : graph.nodes) {
    nodes.push_back(node.get());
    if (node->child != nullptr) flatten(*node->child, nodes);
  }
}

bool is_same(const Operation& a, const Operation& b) {
  return a.type == b.type && a.function == b.function && a.size_bytes == b.size_bytes && a.value == b.value;
}

// Kernels that change are told of, in no useful order.
cuda::Result update(cuda::Context context, cuda::GraphExecHandle& exec, cuda::GraphHandle& graph) {
  std::vector<cuda::GraphNodeHandle*> nodes;
  flatten(graph, nodes);
  if (nodes.size() != exec.nodes.size()) return cuda::Result::GraphExecUpdateFailure;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i]->operation.type != exec.nodes[i].node->operation.type) return cuda::Result::GraphExecUpdateFailure;
  for (size_t i = nodes.size(); i-- > 0;) {
    cuda::GraphNodeHandle& node = *exec.nodes[i].node;
    exec.nodes[i].source = nodes[i]->id;
    if (is_same(node.operation, nodes[i]->operation)) continue;
    node.operation = nodes[i]->operation;
    if (node.operation.type == cuda::GraphNodeType::Kernel)
      notify_graph(cupti::resource::kGraphNodeUpdated, context,
                   {.node = nodes[i], .original_node = &node, .graph_exec = &exec});
  }
  return cuda::Result::Success;
}

// The nodes run back to back, as one piece of the stream's queue, and share the correlation id of the launch; those
// below a condition have none.
cuda::Result launch(ApiCall& call, cuda::GraphExecHandle& exec, cuda::StreamHandle& stream) {
  const Tool* tool = attached_tool.load(std::memory_order_acquire);
  const Place place = place_of(stream);
  const std::lock_guard lock(exec.graph->mutex);
  const Placing placing;
  std::vector<Span> spans;
  spans.reserve(exec.nodes.size());
  {
    const std::lock_guard queue(stream.mutex);
    for (const ExecNode& each : exec.nodes) spans.push_back(enqueue(stream, duration_ns(each.node->operation)));
  }
  for (const ExecNode& each : exec.nodes)
    if (is_value_kernel(each.node->operation)) read_values(each.node->operation.reading);
  if (tool == nullptr || spans.empty()) return cuda::Result::Success;
  for (size_t i = 0; i < spans.size(); ++i) {
    const ExecNode& each = exec.nodes[i];
    const GraphOrigin origin{exec.graph->id, each.id, exec.source_id, each.source};
    tool->executed({each.node->operation, each.is_conditional ? 0 : call.correlation, place, spans[i], origin});
  }
  tool->graph_executed({call.correlation, place, {spans.front().start_ns, spans.back().end_ns}, exec.graph->id});
  return cuda::Result::Success;
}

struct UpdateResult {
  uint32_t result;
  cuda::GraphNode node;
  cuda::GraphNode from_node;
};

}  // namespace

FAKE_CUDA(cuGraphInstantiateWithFlags)(cuda::GraphExec* exec, cuda::Graph graph, uint64_t) {
  return driver_call(call_site("cuGraphInstantiateWithFlags"), [&](ApiCall& call) {
    if (exec == nullptr || graph == nullptr) return cuda::Result::InvalidValue;
    *exec = owned<cuda::GraphExecHandle>().add(instantiate(call.context, *graph));
    return cuda::Result::Success;
  });
}

FAKE_CUDA(cuGraphExecUpdate_v2)(cuda::GraphExec exec, cuda::Graph graph, UpdateResult* result) {
  const cupti::GraphUpdateParams params{exec, graph};
  return driver_call(call_site("cuGraphExecUpdate_v2"), {nullptr, &params}, [&](ApiCall& call) {
    if (exec == nullptr || graph == nullptr || result == nullptr) return cuda::Result::InvalidValue;
    const cuda::Result updated = update(call.context, *exec, *graph);
    *result = {updated == cuda::Result::Success ? 0u : 1u, nullptr, nullptr};
    return updated;
  });
}

FAKE_CUDA(cuGraphExecDestroy)(cuda::GraphExec exec) {
  return driver_call(call_site("cuGraphExecDestroy"), [&](ApiCall& call) {
    if (exec == nullptr) return cuda::Result::InvalidValue;
    notify_graph(cupti::resource::kGraphExecDestroyStarting, call.context, {.graph_exec = exec});
    notify_graph(cupti::resource::kGraphDestroyStarting, call.context, {.graph = exec->graph.get()});
    return owned<cuda::GraphExecHandle>().destroy(exec) ? cuda::Result::Success : cuda::Result::InvalidHandle;
  });
}

FAKE_CUDA(cuGraphLaunch)(cuda::GraphExec exec, cuda::Stream stream) {
  const cupti::GraphLaunchParams params{exec, stream};
  return driver_call(call_site("cuGraphLaunch"), {nullptr, &params}, [&](ApiCall& call) {
    if (exec == nullptr) return cuda::Result::InvalidValue;
    if (call.context == nullptr) return cuda::Result::InvalidContext;
    return launch(call, *exec, resolve(call.context, stream));
  });
}

// Launches a graph `count` times, for callers to whom a call is slow. Returns the first result that is not Success.
BRAGG_FAKE_EXPORT cuda::Result bragg_fake_launch_graph_many(cuda::GraphExec exec, cuda::Stream stream, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const cuda::Result result = cuGraphLaunch(exec, stream);
    if (result != cuda::Result::Success) return result;
  }
  return cuda::Result::Success;
}

}  // namespace bragg::fake
