// The Python call path of the calling thread, read from the interpreter's own frames: no GIL, no reference counts, no
// allocation, no Python object created. The thread that asks is inside the frames it reads, so they cannot go away.
//
// Threads: any, each for itself. Meant for calls out of Python (driver callbacks, C functions). A signal handler may
// use it only where the interpreter cannot be between linking and filling a frame.
// Default visibility marks what the extension module uses too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "context/python_layout.h"

namespace bragg {

struct RawFrame {
  const void* code;             // the code object; kept alive by the frame, not by us
  uint32_t instruction_offset;  // bytes from the first instruction: the call that is under way
  const void* frame;            // identity of the frame while it runs
  friend bool operator==(const RawFrame&, const RawFrame&) = default;
  [[nodiscard]] bool is_of(const RawFrame& other) const noexcept { return frame == other.frame && code == other.code; }
};

// One thread at a time (the import of the extension module). An invalid layout switches the walk off. Earlier layouts
// stay allocated: another thread may be walking with one.
[[gnu::visibility("default")]] void set_python_layout(const PythonLayout& layout);

namespace detail {

[[gnu::visibility("default")]] extern std::atomic<const PythonLayout*> python_layout;  // null: no walk

template <class T>
[[nodiscard]] inline T read(const void* object, uint32_t offset) noexcept {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(object) + offset, sizeof value);
  return value;
}

}  // namespace detail

[[nodiscard]] inline bool python_walk_available() noexcept {
  return detail::python_layout.load(std::memory_order_acquire) != nullptr;
}

// Innermost frame first. Empty on a thread without Python and when no layout is set. Do not keep it across Python code.
class PythonFrameIterator {
 public:
  PythonFrameIterator() noexcept : layout_(detail::python_layout.load(std::memory_order_acquire)) {
    if (layout_ != nullptr) frame_ = innermost(layout_->thread_state());
  }
  constexpr explicit PythonFrameIterator(std::nullptr_t) noexcept : layout_(nullptr) {}  // over no frames
  // Of another thread, whose frames stand still while the GIL is held.
  [[nodiscard]] static PythonFrameIterator of_thread(const void* thread_state) noexcept {
    PythonFrameIterator frames(nullptr);
    frames.layout_ = detail::python_layout.load(std::memory_order_acquire);
    if (frames.layout_ != nullptr) frames.frame_ = frames.innermost(thread_state);
    return frames;
  }
  // The frames as they were when `seen`, innermost first, were the innermost of them, if one of these still runs,
  // called by the next ones; else those of `now`. `seen` must outlive this.
  PythonFrameIterator(const PythonFrameIterator& now, std::span<const RawFrame> seen) noexcept;

  [[nodiscard]] bool next(RawFrame& out) noexcept {
    if (!seen_.empty()) [[unlikely]] {
      out = seen_.front();
      seen_ = seen_.subspan(1);
      return true;
    }
    while (frame_ != nullptr) {
      const void* frame = frame_;
      frame_ = caller_of(frame);
      if (is_internal(frame)) continue;
      out = read(frame);
      return true;
    }
    return false;
  }

  // Calls `see` with these frames, each with a number of its instruction, until it returns false: a quarter faster than
  // by `next` (46 frames).
  template <class See>
  void for_each(See&& see) const noexcept {
    for (const RawFrame& frame : seen_)
      if (!see(frame, number_of_instruction(frame))) return;
    const void* next = nullptr;
    for (const void* frame = frame_; frame != nullptr; frame = next) {
      next = caller_of(frame);
      if (is_internal(frame)) continue;
      if (!see(read(frame), instruction_at(frame))) return;
    }
  }

 protected:
  [[nodiscard]] bool is_internal(const void* frame) const noexcept {
    return is_evaluation(frame) || reference(frame, layout_->frame_function) == layout_->internal_function;
  }
  [[nodiscard]] bool is_evaluation(const void* frame) const noexcept {
    return detail::read<int8_t>(frame, layout_->frame_owner) >= layout_->first_internal_owner;
  }

  const PythonLayout* layout_;

 private:
  friend class PythonRoute;

  [[nodiscard]] bool begins_with(std::span<const RawFrame> frames) const noexcept;
  [[nodiscard]] bool is_of_now() const noexcept { return seen_.empty(); }
  [[nodiscard]] const void* caller_of(const void* frame) const noexcept {
    return detail::read<const void*>(frame, layout_->frame_previous);
  }
  [[nodiscard]] uint64_t instruction_at(const void* frame) const noexcept {
    return layout_->instruction_is_index != 0 ? number_of_instruction(read(frame))
                                              : detail::read<uintptr_t>(frame, layout_->frame_instruction);
  }

  [[nodiscard]] const void* innermost(const void* state) const noexcept {
    if (state == nullptr) return nullptr;
    const auto* top = detail::read<const void*>(state, layout_->thread_state_frame);
    return layout_->has_cframe != 0 && top != nullptr ? detail::read<const void*>(top, layout_->cframe_frame) : top;
  }

  [[nodiscard]] uintptr_t reference(const void* frame, uint32_t offset) const noexcept {
    return detail::read<uintptr_t>(frame, offset) & layout_->reference_mask;
  }

  // A frame that has not begun is at its first instruction, whose predecessor 3.10 to 3.12 then hold.
  [[nodiscard]] uint32_t instruction_offset(const void* frame, uintptr_t code) const noexcept {
    int64_t offset;
    if (layout_->instruction_is_index != 0) {
      offset = int64_t{2} * detail::read<int32_t>(frame, layout_->frame_instruction);
    } else {
      const auto instruction = detail::read<uintptr_t>(frame, layout_->frame_instruction);
      offset = static_cast<int64_t>(instruction - code - layout_->code_instructions);
    }
    return offset > 0 ? static_cast<uint32_t>(offset) : 0;
  }

  [[nodiscard]] RawFrame read(const void* frame) const noexcept {
    const auto code = reference(frame, layout_->frame_code);
    return {reinterpret_cast<const void*>(code), instruction_offset(frame, code), frame};
  }

  // Its address, which tells the code, too. Of an index (3.10) both: to collide, two code objects would have to have
  // the same lower 40 bits of their addresses, and offsets that differ by what the upper ones do.
  [[nodiscard]] uint64_t number_of_instruction(const RawFrame& raw) const noexcept {
    const auto code = reinterpret_cast<uintptr_t>(raw.code);
    return layout_->instruction_is_index != 0 ? code ^ uint64_t{raw.instruction_offset} << 40
                                              : code + layout_->code_instructions + raw.instruction_offset;
  }

  const void* frame_ = nullptr;
  std::span<const RawFrame> seen_;  // before those from `frame_` on
};

// The same frames, and which of them run in one C call of the evaluation loop.
class PythonEvaluationIterator : private PythonFrameIterator {
 public:
  PythonEvaluationIterator() noexcept {
    if (layout_ == nullptr || layout_->evaluation_is_cframe == 0) return;
    if (const void* state = layout_->thread_state(); state != nullptr)
      cframe_ = detail::read<const void*>(state, layout_->thread_state_cframe);
  }

  // `evaluation`: an address among the variables of the C call that runs the frame, where its caller runs in another
  // one; else 0.
  [[nodiscard]] bool next(RawFrame& out, uint64_t& evaluation) noexcept {
    if (!PythonFrameIterator::next(out)) return false;
    evaluation = layout_->evaluation_is_cframe != 0 ? by_cframe(out.frame) : by_frame(out.frame);
    return true;
  }

 private:
  [[nodiscard]] uint64_t by_cframe(const void* frame) noexcept {
    if (layout_->frame_is_entry != 0 && !detail::read<bool>(frame, layout_->frame_is_entry)) return 0;
    return reinterpret_cast<uintptr_t>(
        std::exchange(cframe_, detail::read<const void*>(cframe_, layout_->cframe_previous)));
  }
  [[nodiscard]] uint64_t by_frame(const void* frame) const noexcept {
    const void* caller = frame;
    do {
      caller = detail::read<const void*>(caller, layout_->frame_previous);
    } while (caller != nullptr && !is_evaluation(caller) && is_internal(caller));
    return caller != nullptr && is_evaluation(caller) ? reinterpret_cast<uintptr_t>(caller) : 0;
  }

  const void* cframe_ = nullptr;
};

// Identity of the innermost frame; null on a thread without Python.
[[nodiscard]] const void* current_python_frame() noexcept;

struct ExpectedFrame {
  const void* code;
  int line;  // 0: the instruction has none
};

// Whether the walk of this thread gives exactly these frames, innermost first: the check of a layout against what the
// interpreter itself says, made with the GIL before the layout is trusted.
[[nodiscard, gnu::visibility("default")]] bool python_walk_matches(const ExpectedFrame* expected,
                                                                   size_t count) noexcept;

}  // namespace bragg
