#pragma once

#include <Python.h>

namespace bragg {

// Adds `Scope`, `enter_scope` and `exit_scope` to the module. Plain CPython types: a nanobind object costs more to
// construct than a whole scope may.
[[nodiscard]] bool add_scope_type(PyObject* module);

}  // namespace bragg
