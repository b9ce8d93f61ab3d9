// Where the running interpreter keeps what a call path needs. Plain C, so that a C file with CPython's internal headers
// can fill it by offsetof and the core can read it with no Python header at all.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
namespace bragg {
#endif

// All offsets are bytes from the start of the object that owns the field.
struct PythonLayout {
  uint32_t version_hex;  // PY_VERSION_HEX of the headers
  uint32_t is_valid;     // 0: this interpreter cannot be read (free-threaded)

  // The thread state of the calling thread, without the GIL; null on a thread without Python.
  void* (*thread_state)(void);

  // Thread state -> innermost frame. 3.11 and 3.12 go through a record on the C stack ("cframe").
  uint32_t has_cframe;
  uint32_t thread_state_frame;  // of the frame pointer, or of the cframe pointer
  uint32_t cframe_frame;

  // The record that each C call of the evaluation loop keeps on its stack, innermost first: a cframe (3.10 and 3.11) or
  // a frame of the interpreter's own (later).
  uint32_t evaluation_is_cframe;
  uint32_t thread_state_cframe;
  uint32_t cframe_previous;
  uint32_t frame_is_entry;  // bool: this frame is the first one of its C call (3.11); 0: all are (3.10)

  // The contextvars context of a thread, and what a context has.
  uint32_t thread_state_context;
  uint32_t context_previous;   // that was current when it was entered
  uint32_t context_entered;    // int32: it was entered, and not left yet
  uint32_t context_variables;  // mapping of variables to values
  uint32_t variables_root;     // of that mapping: its first node
  uint32_t object_type;
  uint32_t object_size;
  uint32_t variable_object_size;     // of an object with a number of items
  void (*keep)(const void* object);  // one more reference, and one less: with the GIL
  void (*let_go)(const void* object);

  // One frame.
  uint32_t frame_previous;
  uint32_t frame_code;
  uint32_t frame_instruction;
  uint32_t instruction_is_index;  // 3.10: int32 index in code units, -1 before the first; later: pointer into the code
  uint64_t reference_mask;        // clears the tag bits of a reference (3.14+); all ones before

  // The interpreter's own frames: by owner (at the C entry of the evaluation loop), or by function (None in the frame
  // around an inlined __init__, 3.13+). Values that no frame has where a version has no such frames.
  uint32_t frame_owner;  // int8
  int32_t first_internal_owner;
  uint32_t frame_function;
  uint64_t internal_function;

  // Code object.
  uint32_t code_instructions;  // first instruction, inside the object (3.11+)
  uint32_t code_name;          // qualified where there is one (3.11+)
  uint32_t code_file;
  uint32_t code_first_line;  // int32
  uint32_t code_line_table;  // bytes object

  // bytes and str objects.
  uint32_t bytes_size;  // Py_ssize_t
  uint32_t bytes_data;
  uint32_t text_length;     // Py_ssize_t, in code points
  uint32_t text_state;      // uint32 with the three fields below
  uint32_t text_kind_mask;  // bytes per code point: 1, 2 or 4
  uint32_t text_kind_shift;
  uint32_t text_compact_mask;  // the characters follow the object ...
  uint32_t text_ascii_mask;    // ... its shorter form, if also set
  uint32_t text_ascii_data;
  uint32_t text_compact_data;
  uint32_t text_data_pointer;  // where the characters of other strings are
};

#ifdef __cplusplus
}  // namespace bragg
#endif
