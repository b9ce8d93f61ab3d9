// Calls of Python objects that implement the vectorcall protocol, as operators: JAX's compiled functions, which call no
// Python once they are compiled.
#pragma once

#include <nanobind/nanobind.h>

namespace bragg {

void bind_followed_calls(nanobind::module_& module);

}  // namespace bragg
