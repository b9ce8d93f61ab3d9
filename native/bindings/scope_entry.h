// Entering scopes by the Python objects that name them.
#pragma once

#include <Python.h>

#include <array>
#include <cstdint>
#include <utility>

#include "api/bragg_core.h"
#include "bindings/tasks.h"
#include "context/due_sample.h"

// Threads: those that hold the GIL.
namespace bragg {

// Scope names are mostly literals, so the string object itself is the key. The cache keeps its strings alive.
class NameCache {
 public:
  [[nodiscard]] uint32_t frame_of(PyObject* name) {
    Entry& entry = entries_[(reinterpret_cast<uintptr_t>(name) >> 4) % entries_.size()];
    if (entry.name == name) return entry.frame;
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(name, &size);
    if (text == nullptr) {  // lone surrogates: named all the same, the scope must not raise
      PyErr_Clear();
      text = "(name is not valid text)";
      size = 24;
    }
    const uint32_t frame = bragg_scope_frame(text, static_cast<uint32_t>(size));
    PyObject* const replaced = std::exchange(entry, {Py_NewRef(name), frame}).name;
    Py_XDECREF(replaced);  // of a subclass of str, this may run Python code that enters scopes
    return frame;
  }

 private:
  struct Entry {
    PyObject* name = nullptr;
    uint32_t frame = 0;
  };
  std::array<Entry, 1024> entries_;
};
inline constinit NameCache scope_names;

inline void leave_scope(const void* owner = nullptr) {
  settle_samples();
  if (!tasks.were_ever_seen()) {
    bragg_scope_exit_of(owner);
  } else if (bragg_task_scope_exit(owner) != 0) {
    tasks.tell();
  }
}

[[nodiscard]] inline bool enter_named(PyObject* name, const void* owner = nullptr) {
  if (bragg_has_session() == 0) return false;
  settle_samples();
  const uint32_t frame = scope_names.frame_of(name);
  if (!tasks.were_seen()) {
    bragg_scope_enter_of(frame, owner);
  } else if (bragg_task_scope_enter(frame, owner) != 0) {
    tasks.tell();
  }
  return true;
}

// Metric values of a scope, at its node. -1: a Python exception is set.
[[nodiscard]] int record_metrics(PyObject* metrics);

// Opens a scope and records its metrics, if it has any. `entered`: a session exists. -1: an exception is set, and the
// scope is not open.
[[nodiscard]] inline int enter_with_metrics(PyObject* name, PyObject* metrics, bool& entered,
                                            const void* owner = nullptr) {
  entered = enter_named(name, owner);
  if (!entered || metrics == nullptr || record_metrics(metrics) == 0) return 0;
  leave_scope(owner);
  return -1;
}

}  // namespace bragg
