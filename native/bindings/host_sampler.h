#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace bragg {

// Samples the main thread's Python call path every so often. A native thread asks the interpreter for a pending call,
// so nobody waits for the GIL and no signal is used. The call runs on the main thread where the interpreter next looks:
// after a call, at the start of a function, at the end of a loop's body. It stands for the time since the sample
// before, and for where the native thread saw the main thread at each of its ticks (thread_place.h). Other threads that
// run are sampled too (other_threads.h): in the main thread's sample, or if that does not come by taking the GIL. GIL
// held. Starts are counted: the sampler runs until every start has had its stop.
void start_host_sampler(uint32_t interval_us);
void stop_host_sampler();
// For how long other threads were sampled since the first of these starts, by name. GIL.
[[nodiscard]] std::map<std::string, int64_t> sampled_threads();
void forget_host_sampler_after_fork();

}  // namespace bragg
