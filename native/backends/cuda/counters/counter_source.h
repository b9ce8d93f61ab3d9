// Hardware counters of NVIDIA GPUs as a source of events: CUPTI's PM sampling, of the whole GPU, while kernels run as
// they would.
#pragma once

#include "backends/event_source.h"

namespace bragg {

[[nodiscard]] EventSource& counter_source();

}  // namespace bragg
