// CUDA graphs: nodes in the order they were added, run one after another.
#pragma once

#include "driver/handles.h"

namespace bragg::fake {

// Each tells the tool what was created, as the real driver does through CUPTI's resource callbacks.
[[nodiscard]] cuda::Graph create_graph(cuda::Context context);
cuda::GraphNodeHandle& add_node(cuda::Context context, cuda::GraphHandle& graph, const Operation& operation);

}  // namespace bragg::fake
