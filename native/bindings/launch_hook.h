#pragma once

#include <Python.h>

namespace bragg {

// Adds `LaunchHook` to the module: what Triton calls before each launch. A plain CPython type: every launch of the
// program pays for it.
[[nodiscard]] bool add_launch_hook_type(PyObject* module);

}  // namespace bragg
