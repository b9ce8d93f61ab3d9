#pragma once

#include <nanobind/nanobind.h>

namespace bragg {

// Adds `Session` and `probe_cuda` to the module.
void bind_session(nanobind::module_& module);

}  // namespace bragg
