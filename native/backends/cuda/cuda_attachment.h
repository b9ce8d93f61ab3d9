// Subscribing to CUPTI, and which callbacks and records it is asked for.
//
// Threads: any, with the backend's mutex.
#pragma once

#include "backends/cuda/cuda_state.h"

namespace bragg::cuda_backend {

// False: `reason` says why, and the user was told.
bool attach(Backend& self);
bool attach_if_up(Backend& self);

void apply_collecting(Backend& self, bool on);
void apply_graph_level(Backend& self);
// Callbacks of modules that are loaded: where instructions are sampled.
void follow_calls_for_sampling(Backend& self);
void follow_calls_for_memory(Backend& self);

// Where there is more than one context. Also in a callback, without the mutex.
void record_peer_copies_if_any(Backend& self) noexcept;
// Also in a callback, without the mutex: `reason` is for the user.
void record_nodes_from_now_on(Backend& self, const char* reason) noexcept;

}  // namespace bragg::cuda_backend
