// CUDA graphs: nodes in the order they were added, run one after another. What is told while they are made, and in
// which order, is what CUPTI 13.0 told on an H200.
#pragma once

#include <functional>
#include <memory>

#include "driver/handles.h"

namespace bragg::fake {

// Each tells the tool what was created, as the real driver does through CUPTI's resource callbacks.
[[nodiscard]] std::unique_ptr<cuda::GraphHandle> new_graph(cuda::Context context);
cuda::GraphNodeHandle& add_node(cuda::Context context, cuda::GraphHandle& graph, const Operation& operation,
                                std::unique_ptr<cuda::GraphHandle> child = nullptr);
// `cloned(original, copy)` is called for each node, after those of graphs within it.
using Cloned = std::function<void(cuda::GraphNodeHandle& original, cuda::GraphNodeHandle& copy)>;
[[nodiscard]] std::unique_ptr<cuda::GraphHandle> clone_graph(cuda::Context context, cuda::GraphHandle& original,
                                                             const Cloned& cloned);

// A graph that the program owns through its handle.
[[nodiscard]] cuda::Graph create_graph(cuda::Context context);
cuda::Result destroy_graph(cuda::Context context, cuda::Graph graph);

void announce_destruction(cuda::Context context, cuda::GraphHandle& graph);
void notify_graph(uint32_t cbid, cuda::Context context, cupti::GraphData data);

}  // namespace bragg::fake
