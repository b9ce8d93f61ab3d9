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

// Callers do not move on: where one has, the frame found is that of a later call.
PythonFrameIterator::PythonFrameIterator(const PythonFrameIterator& now, std::span<const RawFrame> seen) noexcept
    : PythonFrameIterator(now) {
  PythonFrameIterator walk = now;
  for (RawFrame raw{}; !seen.empty() && walk.next(raw);) {
    for (size_t i = 0; i < seen.size(); ++i) {
      if (!raw.is_of(seen[i]) || !walk.begins_with(seen.subspan(i + 1))) continue;
      *this = walk;
      seen_ = seen.first(i + 1);
      return;
    }
  }
}

bool PythonFrameIterator::begins_with(std::span<const RawFrame> frames) const noexcept {
  PythonFrameIterator walk = *this;
  RawFrame raw{};
  return std::all_of(frames.begin(), frames.end(),
                     [&](const RawFrame& frame) { return walk.next(raw) && raw == frame; });
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
