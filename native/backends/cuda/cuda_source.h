// CUDA as a source of events: CUPTI's records, instruction samples, and metric values in GPU memory.
#pragma once

#include "backends/event_source.h"

namespace bragg {

[[nodiscard]] EventSource& cuda_source();

}  // namespace bragg
