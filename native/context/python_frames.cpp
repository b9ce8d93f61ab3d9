#include "context/python_frames.h"

#include <deque>

#include "context/code_location.h"

namespace bragg {

constinit std::atomic<const PythonLayout*> detail::python_layout{nullptr};

void set_python_layout(const PythonLayout& layout) {
  static auto& kept = *new std::deque<PythonLayout>;
  detail::python_layout.store(layout.is_valid != 0 ? &kept.emplace_back(layout) : nullptr, std::memory_order_release);
}

PythonFrameIterator::PythonFrameIterator(const PythonFrameIterator& now, const RawFrame& place,
                                         const RawFrame& caller) noexcept
    : PythonFrameIterator(now) {
  PythonFrameIterator walk = *this;
  for (RawFrame raw{}; place.code != nullptr && walk.next(raw);) {
    const bool has_returned = caller.code != nullptr && raw.is_of(caller);
    if (!has_returned && !raw.is_of(place)) continue;
    *this = walk;
    seen_ = place;
    if (has_returned) seen_caller_ = caller;
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
