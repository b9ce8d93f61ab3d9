#pragma once

#include "context/python_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

// The layout of the CPython this file's implementation was compiled against: the extension module is built per minor
// version, and layouts do not change within one.
#ifdef __cplusplus
void bragg_fill_python_layout(bragg::PythonLayout* layout) noexcept;
}
#else
void bragg_fill_python_layout(struct PythonLayout* layout);
#endif
