// CUPTI's callbacks about CUDA graphs, turned into what the graph registry keeps.
#pragma once

#include <cstdint>

#include "backends/cuda/driver/cupti_library.h"

namespace bragg {
class ThreadContext;
}

namespace bragg::cuda_backend {

// Callbacks of Domain::Resource to subscribe to.
inline constexpr uint32_t kGraphResources[] = {
    cupti::resource::kGraphDestroyStarting,     cupti::resource::kGraphNodeCreated,
    cupti::resource::kGraphNodeDestroyStarting, cupti::resource::kGraphExecCreated,
    cupti::resource::kGraphExecDestroyStarting, cupti::resource::kGraphNodeCloned,
    cupti::resource::kGraphNodeUpdated,
};

// Threads: the one that is in the driver call. They may allocate: graphs are built rarely.
// `traces_graphs`: whole graphs are recorded at this moment.
void on_graph_resource(const CuptiLibrary& cupti, uint32_t cbid, const cupti::GraphData& data,
                       bool traces_graphs) noexcept;
// A call of cupti::graph_calls.
void on_graph_call(const CuptiLibrary& cupti, uint32_t cbid, const cupti::CallbackData& data) noexcept;

}  // namespace bragg::cuda_backend
