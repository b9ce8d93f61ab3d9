#pragma once

#include <Python.h>

#include <cstdint>

namespace bragg {

// Tasks, which have a context of `contextvars` of their own each: asyncio's, trio's, anyio's. Threads: with the GIL.
class Tasks {
 public:
  // Makes the variable by which tasks inherit the scope that they were made in, and finds out how its value is read
  // without the GIL: tried on a context with few and with many variables. Where that fails, tasks inherit nothing.
  void learn();

  // Whether this thread or another one has run any when a scope began: until then scopes look no further than here.
  [[nodiscard]] bool were_seen() noexcept {
    if (were_seen_) return true;
    const PyObject* context = PyThreadState_Get()->context;
    if (context == nullptr || !is_entered(context)) [[likely]]
      return false;
    were_seen_ = true;
    return true;
  }
  [[nodiscard]] bool were_ever_seen() const noexcept { return were_seen_; }

  // Tells those that the running one makes in which scope it is.
  void tell() noexcept;

 private:
  [[nodiscard]] bool is_entered(const PyObject* context) const noexcept {
    return can_read_ &&
           *reinterpret_cast<const int32_t*>(reinterpret_cast<const char*>(context) + entered_offset_) != 0;
  }

  PyObject* variable_ = nullptr;
  uint32_t entered_offset_ = 0;
  bool can_read_ = false;
  bool were_seen_ = false;
};
inline constinit Tasks tasks;

}  // namespace bragg
