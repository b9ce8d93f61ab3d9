// Memory of GPUs that a program takes from CUDA itself, as a source of events: by the driver's calls.
#pragma once

#include "backends/cuda/driver/cupti_abi.h"
#include "backends/event_source.h"

namespace bragg {

[[nodiscard]] EventSource& cuda_memory_source();

namespace cuda_memory {

[[nodiscard]] bool is_wanted() noexcept;
// Threads: the program's, at the beginning and end of a call that takes memory or gives it back.
void note_call(uint32_t cbid, const cupti::CallbackData& data) noexcept;
// PyTorch's allocator is there, and its blocks will be noted.
void expect_segments() noexcept;
// Threads: the program's. PyTorch's allocator has handed out a block at this address.
void note_block(uint64_t address, uint64_t bytes) noexcept;

}  // namespace cuda_memory
}  // namespace bragg
