// Callbacks of driver calls that put work on a device: they note who launched what.
//
// Threads: the program's, inside driver calls. No allocation after the first call of a thread, no GIL.
#pragma once

#include <cstdint>

#include "backends/cuda/driver/cupti_abi.h"
#include "context/thread_context.h"

namespace bragg::cuda_backend {

void on_launch_call(uint32_t cbid, const cupti::CallbackData& data);
// Whether calls of CUPTI are made that launches, and other calls, must not meet.
[[nodiscard]] bool uses_gate() noexcept;
// A call that must not meet them.
void gate(ThreadContext& thread, cupti::CallbackSite site) noexcept;

}  // namespace bragg::cuda_backend
