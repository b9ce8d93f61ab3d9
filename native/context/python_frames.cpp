#include "context/python_frames.h"

#include <algorithm>
#include <deque>

#include "context/code_location.h"

namespace bragg {

constinit std::atomic<const PythonLayout*> detail::python_layout{nullptr};

void set_python_layout(const PythonLayout& layout) {
  static auto& kept = *new std::deque<PythonLayout>;
  detail::python_layout.store(layout.is_valid != 0 ? &kept.emplace_back(layout) : nullptr, std::memory_order_release);
}

PythonFrameIterator::PythonFrameIterator(std::span<const RawFrame> place) noexcept : PythonFrameIterator() {
  if (place.empty()) return;
  PythonFrameIterator walk = *this;
  for (RawFrame raw{}; walk.next(raw);) {
    const auto seen = std::find_if(place.begin(), place.end(), [&](const RawFrame& frame) {
      return frame.frame == raw.frame && frame.code == raw.code;
    });
    if (seen == place.end()) continue;
    *this = walk;
    seen_ = place.first(static_cast<size_t>(seen - place.begin()) + 1);
    return;
  }
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
