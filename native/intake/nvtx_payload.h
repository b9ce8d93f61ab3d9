// Numbers that programs give to NVTX ranges and marks.
#pragma once

#include "context/thread_context.h"
#include "intake/nvtx.h"

namespace bragg::nvtx {

// Keeps the number for the node of its range or mark, unless there is none. Threads: the program's.
void record_payload(ContextNodes nodes, const EventAttributes& attributes) noexcept;

}  // namespace bragg::nvtx
