// CUDA graphs: nodes in the order they were added, run one after another.
#pragma once

#include <memory>

#include "driver/handles.h"

namespace bragg::fake {

// Each tells the tool what was created, as the real driver does through CUPTI's resource callbacks.
[[nodiscard]] std::unique_ptr<cuda::GraphHandle> create_graph(cuda::Context context);
cuda::GraphNodeHandle& add_node(cuda::Context context, cuda::GraphHandle& graph, const Operation& operation);

}  // namespace bragg::fake
