// Source lines of cubins, for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace bragg {

void bind_symbols(nanobind::module_& module);

}  // namespace bragg
