#pragma once

#include <array>
#include <cstdint>

#include "api/bragg_core.h"
#include "bindings/thread_place.h"

namespace bragg {

// The frames of a place, innermost first, that can be told now: not those whose code has died since, nor what they
// called. `now`: those of its thread. GIL held.
class LivingFrames {
 public:
  LivingFrames(const ThreadPlace& place, const PythonFrameIterator& now) noexcept;
  [[nodiscard]] const bragg_python_frame* data() const noexcept { return frames_.data(); }
  [[nodiscard]] uint32_t size() const noexcept { return n_frames_; }

 private:
  std::array<bragg_python_frame, BRAGG_MAX_SEEN_FRAMES> frames_;
  uint32_t n_frames_ = 0;
};

}  // namespace bragg
