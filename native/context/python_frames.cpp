#include "context/python_frames.h"

#include <deque>

#include "context/code_location.h"

namespace bragg {

constinit std::atomic<const PythonLayout*> detail::python_layout{nullptr};

void set_python_layout(const PythonLayout& layout) {
  static auto& kept = *new std::deque<PythonLayout>;
  detail::python_layout.store(layout.is_valid != 0 ? &kept.emplace_back(layout) : nullptr, std::memory_order_release);
}

uint32_t walk_python_frames(RawFrame* out, uint32_t capacity, const void* stop_frame) noexcept {
  uint32_t count = 0;
  PythonFrameIterator frames;
  while (count < capacity && frames.next(out[count])) {
    if (out[count++].frame == stop_frame) break;
  }
  return count;
}

const void* current_python_frame() noexcept {
  RawFrame innermost{};
  PythonFrameIterator frames;
  return frames.next(innermost) ? innermost.frame : nullptr;
}

bool python_walk_matches(const ExpectedFrame* expected, size_t count) noexcept {
  PythonFrameIterator frames;
  RawFrame frame{};
  for (size_t i = 0; i < count; ++i) {
    if (!frames.next(frame) || frame.code != expected[i].code) return false;
    if (line_of(frame) != expected[i].line) return false;
  }
  return !frames.next(frame);
}

}  // namespace bragg
