// What is known of CUDA graphs, and where their records are placed in the tree.
#include <thread>
#include <vector>

#include "backends/graph_registry.h"
#include "check.h"
#include "context/clock.h"
#include "data/captured_paths.h"
#include "recording.h"

namespace {

using namespace bragg;

constexpr GraphId operator""_graph(unsigned long long number) { return static_cast<GraphId>(number); }

NodeId scope(NodeId parent, const char* name) {
  return CallingContextTree::instance().child(parent, intern_frame(FrameKind::Scope, name));
}

ContextNodes at(NodeId node) { return {node, node}; }

std::string path_of(NodeId node) {
  auto& frames = FrameTable::instance();
  const auto& tree = CallingContextTree::instance();
  if (node == kRootNode) return "";
  std::string path = path_of(tree.parent(node));
  return path.append("/").append(frames.string(frames.frame(tree.frame(node)).name));
}

// A registry of its own: a graph of `count` nodes, captured at scopes `<name> 0`, `<name> 1`, ...
void capture(GraphRegistry& registry, GraphId graph, const char* name, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    registry.add_node(graph, node_id(graph, i),
                      {at(scope(kRootNode, std::string(name).append(std::to_string(i)).c_str()))});
}

GraphRegistry::Pairs pairs_of(GraphId graph, GraphId exec, uint32_t count) {
  GraphRegistry::Pairs pairs;
  for (uint32_t i = 0; i < count; ++i) pairs.emplace_back(node_id(graph, i), node_id(exec, i));
  return pairs;
}

std::string captured_at(GraphRegistry& registry, ExecHandle exec, GraphNodeId node) {
  const auto version = registry.find(registry.find_exec(exec).version);
  const CapturedNode* found = version != nullptr ? version->nodes.find(node) : nullptr;
  return found == nullptr ? "no such node" : found->is_known() ? path_of(found->nodes.shadow) : "not known";
}

constexpr ExecHandle kExec = &kExec, kOther = &kOther;

TEST(an_executable_graph_knows_where_its_nodes_were_captured_when_the_graph_is_gone) {
  GraphRegistry registry;
  capture(registry, 1_graph, "a", 2);
  registry.instantiated(kExec, 1_graph, pairs_of(1_graph, 2_graph, 2), false);
  registry.forget_graph(1_graph);
  CHECK_EQ(captured_at(registry, kExec, node_id(2_graph, 1)), "/a1");
  registry.instantiated(kOther, 1_graph, pairs_of(1_graph, 3_graph, 2), false);
  CHECK_EQ(captured_at(registry, kOther, node_id(3_graph, 1)), "not known");
}

TEST(a_copy_has_the_nodes_and_the_values_of_its_original) {
  GraphRegistry registry;
  capture(registry, 1_graph, "a", 2);
  registry.add_values(1_graph, {{at(kRootNode), MetricId{7}, 1, 0, 0}});
  for (uint32_t i = 0; i < 2; ++i) registry.copy_node(node_id(1_graph, i), 5_graph, node_id(5_graph, i));
  registry.forget_graph(1_graph);
  registry.instantiated(kExec, 5_graph, pairs_of(5_graph, 6_graph, 2), false);
  CHECK_EQ(captured_at(registry, kExec, node_id(6_graph, 0)), "/a0");
  CHECK_EQ(registry.find(registry.find_exec(kExec).version)->values.size(), 1);
}

TEST(an_update_makes_another_version_and_the_old_one_stays_for_its_records) {
  GraphRegistry registry;
  capture(registry, 1_graph, "a", 3);
  capture(registry, 9_graph, "b", 3);
  registry.instantiated(kExec, 1_graph, pairs_of(1_graph, 2_graph, 3), false);
  const GraphVersionId old = registry.find_exec(kExec).version;
  registry.updated(kExec, 9_graph, {{node_id(9_graph, 2), node_id(2_graph, 2)}}, 1);
  CHECK(registry.find_exec(kExec).version != old);
  for (uint32_t i = 0; i < 3; ++i)
    CHECK_EQ(captured_at(registry, kExec, node_id(2_graph, i)), std::string("/b").append(std::to_string(i)));
  CHECK_EQ(path_of(registry.find(old)->nodes.find(node_id(2_graph, 1))->nodes.shadow), "/a1");
  CHECK(registry.forget_retired(1 + GraphRegistry::kRetirementNs).empty());
  CHECK_EQ(registry.forget_retired(2 + GraphRegistry::kRetirementNs).size(), 1);
  CHECK(registry.find(old) == nullptr);
}

TEST(an_update_by_a_graph_of_another_size_tells_only_what_the_driver_told) {
  GraphRegistry registry;
  capture(registry, 1_graph, "a", 3);
  capture(registry, 9_graph, "b", 2);
  registry.instantiated(kExec, 1_graph, pairs_of(1_graph, 2_graph, 3), false);
  registry.updated(kExec, 9_graph, {{node_id(9_graph, 1), node_id(2_graph, 2)}}, 1);
  CHECK_EQ(captured_at(registry, kExec, node_id(2_graph, 2)), "/b1");
  CHECK_EQ(captured_at(registry, kExec, node_id(2_graph, 0)), "not known");
}

TEST(graphs_that_nobody_destroys_are_forgotten_oldest_first) {
  GraphRegistry registry;
  constexpr uint32_t kNodes = 1u << 18;
  for (const GraphId graph : {1_graph, 2_graph, 3_graph, 4_graph, 5_graph})
    for (uint32_t i = 0; i < kNodes; ++i) registry.add_node(graph, node_id(graph, i), {at(kRootNode)});
  registry.instantiated(kExec, 1_graph, pairs_of(1_graph, 11_graph, 1), false);
  registry.instantiated(kOther, 5_graph, pairs_of(5_graph, 12_graph, 1), false);
  CHECK_EQ(captured_at(registry, kExec, node_id(11_graph, 0)), "not known");
  CHECK_EQ(captured_at(registry, kOther, node_id(12_graph, 0)), "");
}

TEST(many_versions_are_not_kept_for_long) {
  GraphRegistry registry;
  capture(registry, 1_graph, "a", 1000);
  for (uint32_t exec = 2; exec < 2000; ++exec) {
    registry.instantiated(kExec, 1_graph, pairs_of(1_graph, GraphId{exec}, 1000), false);
    registry.destroyed(kExec, 1);
  }
  CHECK(registry.forget_retired(2).size() >= 1998 - GraphRegistry::kMaxRetiredNodes / 1000 - 1);
}

// A graph of `count` nodes in the registry of the process, instantiated as `exec`. The driver may give its id to
// another.
GraphVersionId replayable(GraphId graph, GraphId exec, uint32_t count) {
  auto& registry = GraphRegistry::instance();
  capture(registry, graph, "captured", count);
  registry.instantiated(kExec, graph, pairs_of(graph, exec, count), false);
  registry.forget_graph(graph);
  return registry.find_exec(kExec).version;
}

DeviceEvent record_of(GraphId exec, uint32_t number) {
  DeviceEvent event;
  event.graph_node = node_id(exec, number);
  event.graph = exec;
  event.name = "k";
  return event;
}

TEST(a_record_is_below_its_launch_and_its_capture_path) {
  CapturedPaths paths;
  const FrameId kernel = intern_frame(FrameKind::Kernel, "k");
  const NodeId here = scope(scope(kRootNode, "step"), "replay");
  Launch launch{.shadow = here, .python = kRootNode, .graph = replayable(101_graph, 102_graph, 4)};
  const auto frame_of = [&](StringId) { return kernel; };
  CapturedPlace& place = paths.place_of(launch, record_of(102_graph, 3), frame_of);
  CHECK_EQ(path_of(paths.node_of(place, launch, false)), "/step/replay/<captured_at>/captured3/k");
  CHECK_EQ(path_of(paths.node_of(place, launch, true)), "/<captured_at>/captured3/k");
  CHECK_EQ(path_of(paths.node_of(paths.place_of(launch, record_of(102_graph, 77), frame_of), launch, false)),
           "/step/replay/<captured before recording>/k");
  launch.graph = GraphVersionId::None;
  CHECK_EQ(path_of(paths.node_of(paths.place_of(launch, record_of(102_graph, 3), frame_of), launch, false)),
           "/step/replay/<captured before recording>/k");
}

TEST(launches_from_several_places_have_their_common_place) {
  CapturedPaths paths;
  Launch launch{.graph = replayable(111_graph, 112_graph, 1)};
  CHECK(paths.launch_of(112_graph) == nullptr);
  for (const char* name : {"first", "second"}) {
    launch.shadow = launch.python = scope(scope(kRootNode, "epoch"), name);
    paths.note_launch(launch);
  }
  CHECK_EQ(path_of(paths.launch_of(112_graph)->shadow), "/epoch");
}

TEST(a_record_of_a_graph_that_was_seen_before_is_placed_in_nanoseconds) {
  constexpr uint32_t kNodes = 500, kReplays = 400;
  CapturedPaths paths;
  const FrameId kernel = intern_frame(FrameKind::Kernel, "k");
  Launch launch{.graph = replayable(121_graph, 122_graph, kNodes)};
  std::vector<NodeId> places;
  for (const char* name : {"a", "b", "c"}) places.push_back(scope(kRootNode, name));
  const auto replay_all = [&] {
    uint64_t sum = 0;
    for (uint32_t replay = 0; replay < kReplays; ++replay) {
      launch.shadow = launch.python = places[replay % places.size()];
      for (uint32_t i = 0; i < kNodes; ++i)
        sum += number_of(paths.node_of(
            paths.place_of(launch, record_of(122_graph, i), [&](StringId) { return kernel; }), launch, false));
    }
    return sum;
  };
  const uint64_t first = replay_all();
  const int64_t start_ns = now_ns();
  CHECK_EQ(replay_all(), first);
  std::printf("  %.1f ns a record\n", static_cast<double>(now_ns() - start_ns) / (kReplays * kNodes));
}

// Threads capture, instantiate, launch, update and destroy, while the consumer reads.
TEST(graphs_of_all_threads_are_built_and_launched_at_once) {
  constexpr uint32_t kThreads = 4, kRounds = 20, kNodes = 8, kReplays = 10;
  const test::Recording recording("graphs");
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i)
    threads.emplace_back([] {
      const test::Device& device = test::device();
      device.use();
      const cuda::Stream stream = device.stream();
      const cuda::Function kernel = device.kernel("node");
      const auto captured = [&] {
        cuda::Graph graph = nullptr;
        device.must("cuStreamBeginCapture_v2", stream, 0u);
        for (uint32_t node = 0; node < kNodes; ++node) device.launch(kernel, stream);
        device.must("cuStreamEndCapture", stream, &graph);
        return graph;
      };
      for (uint32_t round = 0; round < kRounds; ++round) {
        const cuda::Graph graph = captured(), update = captured();
        cuda::GraphExec exec = nullptr;
        uint64_t result[3];
        device.must("cuGraphInstantiateWithFlags", &exec, graph, uint64_t{0});
        device.must("cuGraphDestroy", graph);
        for (uint32_t replay = 0; replay < kReplays; ++replay) device.must("cuGraphLaunch", exec, stream);
        device.must("cuGraphExecUpdate_v2", exec, update, &result);
        device.must("cuGraphDestroy", update);
        device.must("cuGraphLaunch", exec, stream);
        device.must("cuGraphExecDestroy", exec);
      }
    });
  for (auto& thread : threads) thread.join();
  recording.flush();
  CHECK_EQ(recording.count("launches"), kThreads * kRounds * (kReplays + 1));
  CHECK_EQ(recording.count("kernels"), kThreads * kRounds * (kReplays + 1) * kNodes);
  CHECK_EQ(recording.count("unknown_captures"), 0);
  CHECK_EQ(recording.count("unattributed_records"), 0);
}

}  // namespace
