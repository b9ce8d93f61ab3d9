#pragma once

#include "api/bragg_core.h"
#include "context/python_frames.h"

namespace bragg {

// Whether there is still a code object: one that was freed has no references, or in their place a pointer to other free
// memory. Whether its frame runs does not tell: it may have returned. GIL held.
[[nodiscard]] bool lives(const void* code) noexcept;
// Whether the code, which lives, has such an instruction: of a frame that changed while it was read it may not.
[[nodiscard]] bool has_instruction(const RawFrame& frame) noexcept;

inline bragg_python_frame as_sampled(const RawFrame& frame) {
  return {frame.code, frame.frame, frame.instruction_offset};
}

}  // namespace bragg
