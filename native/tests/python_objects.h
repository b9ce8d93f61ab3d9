// What the walk of Python frames reads of CPython 3.10, built by hand: a thread's state, frames, and where parts lie.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

#include "context/python_frames.h"

namespace bragg::test {

struct ThreadState {
  uint64_t other = 0;
  void* frame = nullptr;
};
inline thread_local ThreadState* current_state = nullptr;

struct IndexFrame {  // an instruction index, no owner
  uint64_t references = 1;
  IndexFrame* back = nullptr;
  const void* code = nullptr;
  int32_t last_instruction = -1;
};

// 3.11 on: a pointer into the code, an owner, tagged references from 3.14.
struct PointerFrame {
  uintptr_t executable = 0;
  PointerFrame* previous = nullptr;
  uintptr_t function = 0;
  const uint16_t* instruction = nullptr;
  int8_t owner = 0;
};
alignas(16) inline constinit int none = 0;

inline uintptr_t tagged(const void* object) { return reinterpret_cast<uintptr_t>(object) | 1; }

// The state of a str: how many bytes a character has, and how they are kept.
inline constexpr uint32_t kKindShift = 2, kCompact = 1 << 5, kAscii = 1 << 6;

template <class Code, class Bytes>
void place_code(PythonLayout& layout) {
  layout.code_first_line = offsetof(Code, first_line);
  layout.code_line_table = offsetof(Code, line_table);
  layout.bytes_size = offsetof(Bytes, size);
  layout.bytes_data = offsetof(Bytes, data);
}

template <class Text>
void place_text(PythonLayout& layout) {
  layout.text_length = offsetof(Text, length);
  layout.text_state = offsetof(Text, state);
  layout.text_kind_mask = 7 << kKindShift;
  layout.text_kind_shift = kKindShift;
  layout.text_compact_mask = kCompact;
  layout.text_ascii_mask = kAscii;
  layout.text_ascii_data = offsetof(Text, data);
}

template <class Code, class Bytes>
PythonLayout index_layout() {
  PythonLayout layout{};
  layout.version_hex = 0x030A0000;
  layout.is_valid = 1;
  layout.thread_state = []() -> void* { return current_state; };
  layout.thread_state_frame = offsetof(ThreadState, frame);
  layout.frame_previous = offsetof(IndexFrame, back);
  layout.frame_code = offsetof(IndexFrame, code);
  layout.frame_instruction = offsetof(IndexFrame, last_instruction);
  layout.instruction_is_index = 1;
  layout.reference_mask = ~uint64_t{0};
  place_code<Code, Bytes>(layout);
  layout.first_internal_owner = INT8_MAX + 1;
  layout.internal_function = UINT64_MAX;
  return layout;
}

template <class Code, class Bytes>
PythonLayout pointer_layout() {
  PythonLayout layout = index_layout<Code, Bytes>();
  layout.version_hex = 0x030E0000;
  layout.frame_previous = offsetof(PointerFrame, previous);
  layout.frame_code = offsetof(PointerFrame, executable);
  layout.frame_instruction = offsetof(PointerFrame, instruction);
  layout.instruction_is_index = 0;
  layout.reference_mask = ~uint64_t{3};
  layout.frame_owner = offsetof(PointerFrame, owner);
  layout.first_internal_owner = 3;
  layout.frame_function = offsetof(PointerFrame, function);
  layout.internal_function = reinterpret_cast<uintptr_t>(&none);
  layout.code_instructions = offsetof(Code, instructions);
  return layout;
}

// Sets a layout and the state of this thread for one test.
class Interpreter {
 public:
  Interpreter(const PythonLayout& layout, void* frame) : state_{0, frame} {
    set_python_layout(layout);
    current_state = &state_;
  }
  ~Interpreter() {
    set_python_layout(PythonLayout{});
    current_state = nullptr;
  }
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  void run(void* frame) { state_.frame = frame; }

 private:
  ThreadState state_;
};

}  // namespace bragg::test
