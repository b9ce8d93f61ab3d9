#pragma once

#include <Python.h>

#include <cstdint>

namespace bragg {

// Tasks of asyncio, trio and anyio: each runs in its own `contextvars` context. Threads: with the GIL.
class Tasks {
 public:
  // Makes the variable by which tasks inherit the scope that they were made in, and finds out how its value is read
  // without the GIL: tried on a context with few and with many variables. Where that fails, tasks inherit nothing.
  void learn();

  // Whether a scope ever began in a task, on any thread. Until then scopes pay for this look alone.
  [[nodiscard]] bool were_seen() noexcept {
    if (were_seen_) return true;
    const PyObject* context = PyThreadState_Get()->context;
    if (context == nullptr || !is_entered(context)) [[likely]]
      return false;
    were_seen_ = true;
    return true;
  }
  [[nodiscard]] bool were_ever_seen() const noexcept { return were_seen_; }

  // Lets tasks that the running one creates inherit its scope.
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
