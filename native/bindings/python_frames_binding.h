#pragma once

#include <nanobind/nanobind.h>

namespace bragg {

// Teaches the core to walk this interpreter's frames, after checking the walk against the interpreter's own account of
// the importing thread, and binds what tests and benchmarks look at:
//   _walk_available() -> bool                        False: free-threaded, or the check failed
//   _walk() -> list[(qualified name, file, line)]    the caller's frames, innermost first, read without the GIL
//   _line_of(code, instruction_offset) -> int        0: no line
//   _walk_ns(repetitions) -> float                   mean duration of one walk of the caller's frames
void bind_python_frames(nanobind::module_& module);

}  // namespace bragg
