// Power, clocks, temperature and load of GPUs and host as a source of events: NVML and /proc, sampled by one thread.
#pragma once

#include "backends/event_source.h"

namespace bragg {

[[nodiscard]] EventSource& telemetry_source();

}  // namespace bragg
