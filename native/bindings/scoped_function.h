#pragma once

#include <Python.h>

namespace bragg {

// Makes ready what `make_scoped_function` needs. False: a Python exception is set.
[[nodiscard]] bool add_scoped_function_type();

// A function that runs inside a scope, as a scope decorates it. `metrics` may be nullptr. nullptr: an exception is set.
[[nodiscard]] PyObject* make_scoped_function(PyObject* name, PyObject* metrics, PyObject* function);

}  // namespace bragg
