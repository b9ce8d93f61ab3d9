#include "backends/cuda/graphs/graph_callbacks.h"

#include <utility>
#include <vector>

#include "backends/graph_registry.h"
#include "context/clock.h"
#include "context/stream_captures.h"
#include "context/thread_context.h"

namespace bragg::cuda_backend {
namespace {

namespace resource = cupti::resource;

// What this thread's call of cuGraphInstantiate or cuGraphExecUpdate has told so far.
struct BuildingCall {
  struct Clone {
    GraphNodeId original;
    GraphNodeId id;
    cuda::GraphNode node;  // nullptr: destroyed since
  };
  cupti::GraphCall which = cupti::GraphCall::None;
  std::vector<Clone> clones;
  GraphRegistry::Pairs updates;
};

BuildingCall& building() {
  thread_local BuildingCall call;
  return call;
}

GraphId id_of(const CuptiLibrary& cupti, cuda::Graph graph) {
  uint32_t id = 0;
  if (graph != nullptr) (void)cupti.get_graph_id(graph, &id);  // 0 stays: no graph has it
  return GraphId{id};
}

void begin_building(cupti::GraphCall which) {
  building() = {};
  building().which = which;
}

GraphNodeId id_of(const CuptiLibrary& cupti, cuda::GraphNode node) {
  uint64_t id = 0;
  if (node != nullptr) (void)cupti.get_graph_node_id(node, &id);
  return GraphNodeId{id};
}

// A launch, copy or set that was captured instead of run, or a node that was added to a graph.
void on_node_created(const CuptiLibrary& cupti, const cupti::GraphData& data) {
  if (building().which == cupti::GraphCall::Instantiate) return;  // the clones tell
  ThreadContext& thread = ThreadContext::current();
  OpenCall& call = thread.open_call;
  CapturedNode node{thread.here_in_native_code()};
  const bool is_captured = call.correlation != CorrelationId::None;
  if (is_captured) node.name = call.kernel;
  if (thread.launches_own_kernel) node.reading = thread.own_reading;
  const GraphId graph = id_of(cupti, data.graph);
  auto& registry = GraphRegistry::instance();
  registry.add_node(graph, id_of(cupti, data.node), node);
  if (!is_captured) return;
  registry.add_values(graph, std::exchange(call.values, {}));
  Event event = Event::of(EventKind::Captured, call.mask);
  event.is_own = thread.launches_own_kernel;
  event.correlation = std::exchange(call.correlation, CorrelationId::None);
  thread.record(event);
}

void on_node_cloned(const CuptiLibrary& cupti, const cupti::GraphData& data) {
  const GraphNodeId original = id_of(cupti, data.original_node), id = id_of(cupti, data.node);
  if (building().which == cupti::GraphCall::Instantiate) {
    building().clones.push_back({original, id, data.node});
  } else {
    GraphRegistry::instance().copy_node(original, id_of(cupti, data.graph), id);
  }
}

// Seen on an H200: a memory node is replaced by another one, while records keep the id of the first.
void on_node_destroyed(const CuptiLibrary& cupti, cuda::GraphNode node) {
  for (BuildingCall::Clone& clone : building().clones)
    if (clone.node == node) clone = {clone.original, id_of(cupti, node), nullptr};
}

// Nodes of a graph within have moved into the executable graph by now, those that were destroyed before that.
void on_exec_created(const CuptiLibrary& cupti, const cupti::GraphData& data, bool traces_graphs) {
  GraphRegistry::Pairs pairs;
  for (const BuildingCall::Clone& clone : building().clones)
    pairs.emplace_back(clone.original, clone.node != nullptr ? id_of(cupti, clone.node) : clone.id);
  GraphRegistry::instance().instantiated(data.graph_exec, id_of(cupti, data.graph), pairs, traces_graphs);
}

void on_capture_ended(const CuptiLibrary& cupti, const cupti::CaptureParams& params, cuda::Result result) {
  if (result == cuda::Result::StreamCaptureWrongThread) return;  // it continues
  std::vector<CapturedValue> values = StreamCaptures::instance().end(params.stream);
  if (result != cuda::Result::Success || params.graph == nullptr) return;
  GraphRegistry::instance().add_values(id_of(cupti, *params.graph), std::move(values));
}

}  // namespace

void on_graph_resource(const CuptiLibrary& cupti, uint32_t cbid, const cupti::GraphData& data,
                       bool traces_graphs) noexcept {
  switch (cbid) {
    case resource::kGraphNodeCreated:
      return on_node_created(cupti, data);
    case resource::kGraphNodeCloned:
      return on_node_cloned(cupti, data);
    case resource::kGraphNodeDestroyStarting:
      return on_node_destroyed(cupti, data.node);
    case resource::kGraphNodeUpdated:
      if (building().which == cupti::GraphCall::Update)  // not of a child graph alone, as XLA updates them
        building().updates.emplace_back(id_of(cupti, data.node), id_of(cupti, data.original_node));
      return;
    case resource::kGraphExecCreated:
      return on_exec_created(cupti, data, traces_graphs);
    case resource::kGraphExecDestroyStarting:
      return GraphRegistry::instance().destroyed(data.graph_exec, now_ns());
    case resource::kGraphDestroyStarting:
      return GraphRegistry::instance().forget_graph(id_of(cupti, data.graph));
    default:
      return;
  }
}

void on_graph_call(const CuptiLibrary& cupti, uint32_t cbid, const cupti::CallbackData& data) noexcept {
  const bool is_entered = data.site == cupti::CallbackSite::Enter;
  const auto result =
      is_entered ? cuda::Result::NotReady : *static_cast<const cuda::Result*>(data.function_return_value);
  switch (cupti::graph_call(cbid)) {
    case cupti::GraphCall::BeginCapture:
      if (result == cuda::Result::Success)
        StreamCaptures::instance().begin(static_cast<const cupti::CaptureParams*>(data.function_params)->stream,
                                         ThreadContext::current());
      return;
    case cupti::GraphCall::EndCapture:
      if (!is_entered) on_capture_ended(cupti, *static_cast<const cupti::CaptureParams*>(data.function_params), result);
      return;
    case cupti::GraphCall::Instantiate:
      begin_building(is_entered ? cupti::GraphCall::Instantiate : cupti::GraphCall::None);
      return;
    case cupti::GraphCall::Update: {
      const auto& params = *static_cast<const cupti::GraphUpdateParams*>(data.function_params);
      if (result == cuda::Result::Success)
        GraphRegistry::instance().updated(params.exec, id_of(cupti, params.graph), building().updates, now_ns());
      begin_building(is_entered ? cupti::GraphCall::Update : cupti::GraphCall::None);
      return;
    }
    default:
      return;
  }
}

}  // namespace bragg::cuda_backend
