// CUDA graphs: callbacks while they are built, records when they run.
#include <algorithm>
#include <map>
#include <set>

#include "selftest/profiler.h"
#include "selftest/program.h"
#include "selftest/scenario.h"

namespace bragg::fake::selftest {
namespace {

Profiler* the_profiler = nullptr;  // of the running scenario, for its resource callback
std::map<uint32_t, int> seen_ids;
std::map<uint64_t, uint64_t> original_of;  // node of an executable graph -> node of the graph it was made from
uint32_t exec_id = 0;

template <class Function, class Handle, class Id>
Id ask(const char* symbol, Handle handle, Id id) {
  CHECK_EQ(the_profiler->call<Function>(symbol, handle, &id), Profiler::kOk);
  return id;
}

uint64_t node_id(cuda::GraphNode node) {
  return ask<cupti::CuptiGetGraphNodeId>("cuptiGetGraphNodeId", node, uint64_t{0});
}

void on_graph_resource(uint32_t cbid, const cupti::GraphData& data) {
  ++seen_ids[cbid];
  if (cbid == cupti::resource::kGraphNodeCloned) original_of[node_id(data.node)] = node_id(data.original_node);
  if (cbid == cupti::resource::kGraphExecCreated)
    exec_id = ask<cupti::CuptiGetGraphExecId>("cuptiGetGraphExecId", data.graph_exec, uint32_t{0});
}

void start(Profiler& profiler, std::initializer_list<cupti::Kind> kinds) {
  the_profiler = &profiler;
  Profiler::on_resource(on_graph_resource);
  profiler.start(kinds);
}

}  // namespace

SCENARIO(captured_launches_become_nodes_not_records) {
  const Program program;
  Profiler profiler;
  start(profiler, {cupti::Kind::ConcurrentKernel, cupti::Kind::Memcpy});
  cuda::Graph graph = nullptr;
  (void)program.capture_three_nodes(program.stream(), graph);
  program.synchronize();
  profiler.flush();
  CHECK(Profiler::records().empty());
  CHECK_EQ(seen_ids[cupti::resource::kGraphCreated], 3);      // and two copies for the executable graph
  CHECK_EQ(seen_ids[cupti::resource::kGraphNodeCreated], 7);  // of copies too, and one that takes a copy's place
  CHECK_EQ(seen_ids[cupti::resource::kGraphNodeCloned], 3);
  CHECK_EQ(seen_ids[cupti::resource::kGraphExecCreated], 1);
}

SCENARIO_FOR(nodes_of_a_graph_launch_share_its_correlation_id, "12.4", "13.0", "13.4") {
  const Program program;
  Profiler profiler;
  start(profiler, {cupti::Kind::ConcurrentKernel, cupti::Kind::Memcpy});
  cuda::Graph graph = nullptr;
  const cuda::Stream stream = program.stream();
  const cuda::GraphExec exec = program.capture_three_nodes(stream, graph);
  program.must("cuGraphLaunch", exec, stream);
  program.synchronize();
  profiler.flush();
  const auto records = Profiler::records();
  REQUIRE(records.size() == 3);
  CHECK_EQ(records[0].name, "first");
  CHECK_EQ(records[1].size_bytes, 4096);
  CHECK_EQ(records[2].name, "third");
  const uint32_t graph_id = ask<cupti::CuptiGetGraphId>("cuptiGetGraphId", graph, uint32_t{0});
  for (size_t i = 0; i < records.size(); ++i) {
    CHECK_EQ(records[i].correlation, records[0].correlation);
    CHECK_EQ(records[i].graph, exec_id);
    CHECK_EQ(records[i].graph_node, uint64_t{exec_id} << 32 | i);
    CHECK_EQ(original_of[records[i].graph_node], uint64_t{graph_id} << 32 | i);
  }
  CHECK(records[1].start_ns >= records[0].end_ns && records[2].start_ns >= records[1].end_ns);
}

SCENARIO(graph_trace_replaces_the_nodes_while_it_is_enabled) {
  const Program program;
  Profiler profiler;
  start(profiler, {cupti::Kind::ConcurrentKernel, cupti::Kind::GraphTrace});
  cuda::Graph graph = nullptr;
  const cuda::Stream stream = program.stream();
  const cuda::GraphExec exec = program.capture_three_nodes(stream, graph);
  const auto run = [&] {
    program.must("cuGraphLaunch", exec, stream);
    program.launch(program.function("alone"), stream);
    program.synchronize();
    profiler.flush();
  };
  run();
  REQUIRE(Profiler::records(cupti::Kind::GraphTrace).size() == 1);
  CHECK_EQ(Profiler::records(cupti::Kind::GraphTrace)[0].graph, exec_id);
  CHECK_EQ(Profiler::records(cupti::Kind::ConcurrentKernel).size(), 1);
  profiler.disable(cupti::Kind::GraphTrace);
  run();
  CHECK_EQ(Profiler::records(cupti::Kind::GraphTrace).size(), 1);
  CHECK_EQ(Profiler::records(cupti::Kind::ConcurrentKernel).size(), 4);  // and two kernels of the graph
}

SCENARIO(streams_join_a_capture_through_events) {
  const Program program;
  Profiler profiler;
  start(profiler, {cupti::Kind::ConcurrentKernel});
  const cuda::Stream origin = program.stream(), side = program.stream();
  cuda::Event fork = nullptr;
  program.must("cuEventCreate", &fork, 0u);
  program.must("cuStreamBeginCapture_v2", origin, 0u);
  program.must("cuEventRecord", fork, origin);
  program.must("cuStreamWaitEvent", side, fork, 0u);
  program.launch(program.function("aside"), side);
  cuda::Graph graph = nullptr;
  program.must("cuStreamEndCapture", origin, &graph);
  CHECK_EQ(seen_ids[cupti::resource::kGraphNodeCreated], 1);
  program.launch(program.function("after"), side);
  program.synchronize();
  profiler.flush();
  REQUIRE(Profiler::records().size() == 1);
  CHECK_EQ(Profiler::records()[0].name, "after");
}

SCENARIO(default_stream_cannot_be_captured) {
  const Program program;
  CHECK_EQ(program.call("cuStreamBeginCapture_v2", cuda::Stream{nullptr}, 0u), cuda::Result::StreamCaptureUnsupported);
}

SCENARIO(destroying_is_announced) {
  const Program program;
  Profiler profiler;
  start(profiler, {});
  cuda::Graph graph = nullptr;
  const cuda::GraphExec exec = program.capture_three_nodes(program.stream(), graph);
  program.must("cuGraphExecDestroy", exec);
  program.must("cuGraphDestroy", graph);
  CHECK_EQ(seen_ids[cupti::resource::kGraphExecDestroyStarting], 1);
  CHECK_EQ(seen_ids[cupti::resource::kGraphDestroyStarting], 2);  // the executable graph's, too
}

}  // namespace bragg::fake::selftest
