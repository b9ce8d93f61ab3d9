// Metrics of the program, names of kernels, and states, for Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace bragg {

void bind_metrics(nanobind::module_& module);

// The bits of a Python number as this metric's type. Raises (nanobind::python_error) what the conversion raises.
[[nodiscard]] uint64_t metric_bits(uint32_t metric, nanobind::handle value);

}  // namespace bragg
