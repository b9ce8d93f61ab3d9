// C, not C++: CPython's internal headers do not all compile as C++.
#define Py_BUILD_CORE 1

#include "bindings/python_layout.h"

#include <Python.h>
#include <stddef.h>
#include <string.h>

#include "internal/pycore_context.h"
#include "internal/pycore_hamt.h"

#if PY_VERSION_HEX >= 0x030E0000
#include "internal/pycore_interpframe_structs.h"
#elif PY_VERSION_HEX >= 0x030B0000
#include "internal/pycore_frame.h"
#else
#include <frameobject.h>
#endif

static void fill_thread_state(struct PythonLayout* layout) {
  layout->thread_state = (void* (*)(void))PyGILState_GetThisThreadState;
#if PY_VERSION_HEX >= 0x030D0000
  layout->thread_state_frame = offsetof(PyThreadState, current_frame);
#elif PY_VERSION_HEX >= 0x030B0000
  layout->has_cframe = 1;
  layout->thread_state_frame = offsetof(PyThreadState, cframe);
  layout->cframe_frame = offsetof(_PyCFrame, current_frame);
#else
  layout->thread_state_frame = offsetof(PyThreadState, frame);
#endif
}

static void fill_evaluation(struct PythonLayout* layout) {
#if PY_VERSION_HEX < 0x030C0000
#if PY_VERSION_HEX >= 0x030B0000
  typedef _PyCFrame EvaluationRecord;
  layout->frame_is_entry = offsetof(struct _PyInterpreterFrame, is_entry);
#else
  typedef CFrame EvaluationRecord;
#endif
  layout->evaluation_is_cframe = 1;
  layout->thread_state_cframe = offsetof(PyThreadState, cframe);
  layout->cframe_previous = offsetof(EvaluationRecord, previous);
#else
  (void)layout;
#endif
}

static void keep(const void* object) { Py_INCREF((PyObject*)object); }
static void let_go(const void* object) { Py_DECREF((PyObject*)object); }

static void fill_context(struct PythonLayout* layout) {
  layout->thread_state_context = offsetof(PyThreadState, context);
  layout->context_previous = offsetof(struct _pycontextobject, ctx_prev);
  layout->context_entered = offsetof(struct _pycontextobject, ctx_entered);
  layout->context_variables = offsetof(struct _pycontextobject, ctx_vars);
  layout->variables_root = offsetof(PyHamtObject, h_root);
  layout->object_type = offsetof(PyObject, ob_type);
  layout->object_size = sizeof(PyObject);
  layout->variable_object_size = sizeof(PyVarObject);
  layout->keep = keep;
  layout->let_go = let_go;
}

static void fill_frame(struct PythonLayout* layout) {
#if PY_VERSION_HEX < 0x030B0000
  layout->frame_previous = offsetof(PyFrameObject, f_back);
  layout->frame_code = offsetof(PyFrameObject, f_code);
  layout->frame_instruction = offsetof(PyFrameObject, f_lasti);
  layout->instruction_is_index = 1;
#else
  typedef struct _PyInterpreterFrame Frame;
  layout->frame_previous = offsetof(Frame, previous);
#if PY_VERSION_HEX >= 0x030D0000
  layout->frame_code = offsetof(Frame, f_executable);
  layout->frame_instruction = offsetof(Frame, instr_ptr);
#else
  layout->frame_code = offsetof(Frame, f_code);
  layout->frame_instruction = offsetof(Frame, prev_instr);
#endif
#endif
#if PY_VERSION_HEX >= 0x030E0000
  layout->reference_mask = ~(uint64_t)3;  // objects are 16-byte aligned, the tags are in the low two bits
#else
  layout->reference_mask = ~(uint64_t)0;
#endif
}

static void fill_internal_frames(struct PythonLayout* layout) {
#if PY_VERSION_HEX >= 0x030C0000
  layout->frame_owner = offsetof(struct _PyInterpreterFrame, owner);
  layout->frame_function = offsetof(struct _PyInterpreterFrame, f_funcobj);
  layout->internal_function = (uint64_t)(uintptr_t)Py_None;
#if PY_VERSION_HEX >= 0x030E0000
  layout->first_internal_owner = FRAME_OWNED_BY_INTERPRETER;
#else
  layout->first_internal_owner = FRAME_OWNED_BY_CSTACK;
#endif
#else
  layout->first_internal_owner = INT8_MAX + 1;
  layout->internal_function = UINT64_MAX;
#endif
}

static void fill_code(struct PythonLayout* layout) {
#if PY_VERSION_HEX >= 0x030B0000
  layout->code_instructions = offsetof(PyCodeObject, co_code_adaptive);
  layout->code_name = offsetof(PyCodeObject, co_qualname);
#else
  layout->code_name = offsetof(PyCodeObject, co_name);
#endif
  layout->code_file = offsetof(PyCodeObject, co_filename);
  layout->code_first_line = offsetof(PyCodeObject, co_firstlineno);
  layout->code_line_table = offsetof(PyCodeObject, co_linetable);
}

// The state of a str is bit fields, which have no offsetof: set one field, read the word.
static uint32_t state_word(unsigned kind, unsigned compact, unsigned ascii) {
  PyASCIIObject text;
  uint32_t word;
  memset(&text, 0, sizeof text);
  text.state.kind = kind & 7;
  text.state.compact = compact & 1;
  text.state.ascii = ascii & 1;
  memcpy(&word, &text.state, sizeof word);
  return word;
}

static void fill_text(struct PythonLayout* layout) {
  layout->bytes_size = offsetof(PyVarObject, ob_size);
  layout->bytes_data = offsetof(PyBytesObject, ob_sval);
  layout->text_length = offsetof(PyASCIIObject, length);
  layout->text_state = offsetof(PyASCIIObject, state);
  layout->text_kind_mask = state_word(7, 0, 0);
  layout->text_kind_shift = (uint32_t)__builtin_ctz(layout->text_kind_mask);
  layout->text_compact_mask = state_word(0, 1, 0);
  layout->text_ascii_mask = state_word(0, 0, 1);
  layout->text_ascii_data = sizeof(PyASCIIObject);
  layout->text_compact_data = sizeof(PyCompactUnicodeObject);
  layout->text_data_pointer = offsetof(PyUnicodeObject, data);
}

void bragg_fill_python_layout(struct PythonLayout* layout) {
  memset(layout, 0, sizeof *layout);
  layout->version_hex = PY_VERSION_HEX;
  fill_thread_state(layout);
  fill_evaluation(layout);
  fill_context(layout);
  fill_frame(layout);
  fill_internal_frames(layout);
  fill_code(layout);
  fill_text(layout);
#ifndef Py_GIL_DISABLED
  layout->is_valid = 1;  // free-threaded: instructions live in per-thread copies that these offsets do not describe
#endif
}
