#pragma once

#include <Python.h>

#include <cstdint>
#include <string>

namespace bragg {

// As `threading` and the system know the thread of a state. GIL. No Python code runs, no exception is lost.
[[nodiscard]] std::string name_of(const PyThreadState* state);             // empty: it is not known, or not now
[[nodiscard]] uint32_t thread_id_of(const PyThreadState* state) noexcept;  // 0: it is not known

}  // namespace bragg
