// The calls of the CUDA runtime and driver that a program makes, as nodes between its code and the GPU's work.
#pragma once

#include "backends/cuda/driver/cupti_library.h"
#include "backends/cuda/launch/launch_watch.h"
#include "context/recording_state.h"
#include "context/thread_context.h"

namespace bragg::api_calls {

// Enables the callbacks that a level needs, and disables those that it does not; the callbacks of other parts stay.
// Threads: one at a time, under the backend's lock.
void follow(const CuptiLibrary& cupti, cupti::Subscriber subscriber, ApiLevel level);
// The subscription is gone, and callbacks with it.
void forget();

[[nodiscard]] inline bool are_followed() noexcept {
  return cuda_backend::launch_watch.api_level.load(std::memory_order_relaxed) != ApiLevel::Off;
}

// From callbacks: application threads, no allocation after the first call of a kind, no GIL. The outermost call counts:
// what the runtime calls of the driver is its own affair.
void enter(cupti::Domain domain, uint32_t cbid, const cupti::CallbackData& data) noexcept;
void leave(cupti::Domain domain, uint32_t cbid, const cupti::CallbackData& data) noexcept;

}  // namespace bragg::api_calls
