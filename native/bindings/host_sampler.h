#pragma once

#include <cstdint>

namespace bragg {

// Samples the main thread's Python call path every so often. A native thread asks the interpreter for a pending call,
// so nobody waits for the GIL and no signal is used; the call runs on the main thread at the next bytecode boundary,
// for a C function that is when it returns, and stands for the time since the sample before. GIL held. Starts are
// counted: the sampler runs until every start has had its stop.
void start_host_sampler(uint32_t interval_us);
void stop_host_sampler();
void forget_host_sampler_after_fork();

}  // namespace bragg
