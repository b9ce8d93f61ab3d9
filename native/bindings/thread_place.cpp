#include "bindings/thread_place.h"

#include <algorithm>
#include <utility>

#include "context/peeked_memory.h"

namespace bragg {
namespace {

constexpr int kMaxReads = 4;     // of a thread that calls and returns
constexpr int kMaxInternal = 4;  // frames of the interpreter's own, one upon the other

[[nodiscard]] std::optional<const void*> pointer_at(const void* object, uint32_t offset) noexcept {
  const void* value = nullptr;
  if (object == nullptr || !peek_bytes(static_cast<const std::byte*>(object) + offset, &value, sizeof value)) return {};
  return value;
}

class PlaceReader {
 public:
  PlaceReader(const PythonLayout& layout, const void* thread_state) noexcept
      : layout_(layout),
        state_(thread_state),
        frame_size_(std::max({layout.frame_previous, layout.frame_code, layout.frame_instruction, layout.frame_function,
                              layout.frame_owner}) +
                    sizeof(uint64_t)) {}

  // Nothing: it is in no frame.
  [[nodiscard]] std::optional<ThreadPlace> read() const noexcept {
    const void* frame = innermost_frame();
    if (frame == nullptr) return {};
    PeekedMemory memory;
    ThreadPlace place;
    for (int n_internal = 0; frame != nullptr && !place.is_full() && n_internal <= kMaxInternal;) {
      const void* copy = memory.copy_of(frame, frame_size_);
      if (copy == nullptr) break;
      const bool is_programs = !is_internal(copy);
      if (is_programs) place.append(raw_of(frame, copy));
      n_internal = is_programs ? 0 : n_internal + 1;
      frame = detail::read<const void*>(copy, layout_.frame_previous);
    }
    return place;
  }

 private:
  [[nodiscard]] const void* innermost_frame() const noexcept {
    const auto top = pointer_at(state_, layout_.thread_state_frame);
    if (!top || layout_.has_cframe == 0) return top.value_or(nullptr);
    return pointer_at(*top, layout_.cframe_frame).value_or(nullptr);
  }

  [[nodiscard]] bool is_internal(const void* copy) const noexcept {
    return detail::read<int8_t>(copy, layout_.frame_owner) >= layout_.first_internal_owner ||
           (detail::read<uintptr_t>(copy, layout_.frame_function) & layout_.reference_mask) ==
               layout_.internal_function;
  }

  [[nodiscard]] RawFrame raw_of(const void* frame, const void* copy) const noexcept {
    const uintptr_t code = detail::read<uintptr_t>(copy, layout_.frame_code) & layout_.reference_mask;
    const int64_t offset = layout_.instruction_is_index != 0
                               ? int64_t{2} * detail::read<int32_t>(copy, layout_.frame_instruction)
                               : static_cast<int64_t>(detail::read<uintptr_t>(copy, layout_.frame_instruction) - code -
                                                      layout_.code_instructions);
    return {reinterpret_cast<const void*>(code), offset > 0 ? static_cast<uint32_t>(offset) : 0, frame};
  }

  const PythonLayout& layout_;
  const void* state_;
  size_t frame_size_;  // of what is read of it
};

// The frames of `place` that the thread was in before, too. Callers do not move on.
[[nodiscard]] ThreadPlace common_part(const ThreadPlace& before, const ThreadPlace& place) noexcept {
  const auto is_part = [&](std::span<const RawFrame> frames) {
    for (auto rest = before.frames(); !rest.empty(); rest = rest.subspan(1)) {
      const size_t n = std::min(rest.size(), frames.size());
      if (rest[0].is_of(frames[0]) && std::equal(rest.begin() + 1, rest.begin() + n, frames.begin() + 1)) return true;
    }
    return false;
  };
  auto frames = place.frames();
  while (!frames.empty() && !is_part(frames)) frames = frames.subspan(1);
  ThreadPlace part;
  for (const RawFrame& frame : frames) part.append(frame);
  return part;
}

}  // namespace

ThreadPlace place_of(const void* thread_state) noexcept {
  const PythonLayout* layout = detail::python_layout.load(std::memory_order_acquire);
  if (layout == nullptr || thread_state == nullptr) return {};
  const PlaceReader reader(*layout, thread_state);
  const auto place = reader.read();
  return place && place == reader.read() ? *place : ThreadPlace{};
}

std::optional<ThreadPlace> passing_place_of(const void* thread_state) noexcept {
  const PythonLayout* layout = detail::python_layout.load(std::memory_order_acquire);
  if (layout == nullptr || thread_state == nullptr) return {};
  const PlaceReader reader(*layout, thread_state);
  auto before = reader.read();
  if (!before) return {};
  ThreadPlace common;
  for (int i = 1; i < kMaxReads; ++i) {
    const ThreadPlace place = reader.read().value_or(ThreadPlace{});
    common = common_part(*before, place);
    if (common == place && place.innermost().is_of(before->innermost())) break;
    before = place;
  }
  return common;
}

void ThreadPlaces::see(const ThreadPlace& place, int64_t now_ns) noexcept {
  if (count_ > 0 && (stays_[count_ - 1].place == place || count_ == stays_.size()))
    stays_[count_ - 1].until_ns = now_ns;
  else
    stays_[count_++] = {place, now_ns};
}

}  // namespace bragg
