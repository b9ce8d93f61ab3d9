// The threads of the program: what they wrote into their rings.
#pragma once

#include "backends/event_source.h"

namespace bragg {

[[nodiscard]] EventSource& host_source();

}  // namespace bragg
