// Memory of GPUs that PyTorch's allocator hands out, as a source of events: who holds it at the peak, and when.
#pragma once

#include "backends/event_source.h"

namespace bragg {

[[nodiscard]] EventSource& torch_memory_source();

}  // namespace bragg
