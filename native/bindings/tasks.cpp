#include "bindings/tasks.h"

#include <cstdint>

#include "api/bragg_core.h"
#include "bindings/python_layout.h"
#include "context/python_contexts.h"

namespace bragg {
namespace {

constexpr uint64_t kTried = 0x0123456789ABCDEF;
constexpr int kManyVariables = 512;  // until the first node of the mapping is an array: beyond 16 of 32 children

[[nodiscard]] bool set(PyObject* of, PyObject* value) {
  PyObject* token = value != nullptr ? PyContextVar_Set(of, value) : nullptr;
  Py_XDECREF(token);
  return token != nullptr;
}

[[nodiscard]] const void* root_type(const PythonLayout& layout, PyObject* context) {
  using detail::read;
  const auto* variables = read<const void*>(context, layout.context_variables);
  return read<const void*>(read<const void*>(variables, layout.variables_root), layout.object_type);
}

// hamt.c: a hash of 64 bits is folded.
[[nodiscard]] uint32_t folded(Py_hash_t hash) {
  const auto bits = static_cast<uint64_t>(hash);
  return static_cast<uint32_t>(bits) ^ static_cast<uint32_t>(bits >> 32);
}

[[nodiscard]] bool add_variables(const PythonLayout& layout, PyObject* context, ScopeVariable& known) {
  for (int i = 0; i < kManyVariables && root_type(layout, context) == known.bitmap_type; ++i) {
    PyObject* other = PyContextVar_New("bragg_trial", nullptr);
    const bool is_set = other != nullptr && set(other, Py_None);
    Py_XDECREF(other);
    if (!is_set) return false;
  }
  known.array_type = root_type(layout, context);
  return true;
}

// In a context that is entered.
[[nodiscard]] bool learn_in(const PythonLayout& layout, PyObject* context, PyObject* variable) {
  ScopeVariable known{.variable = variable, .hash = folded(PyObject_Hash(variable))};
  PyObject* value = PyBytes_FromStringAndSize(reinterpret_cast<const char*>(&kTried), sizeof kTried);
  const bool is_set = set(variable, value);
  Py_XDECREF(value);
  if (!is_set) return false;
  known.bitmap_type = root_type(layout, context);
  set_scope_variable(known);
  if (current_python_context().id != context || inherited_scope(context) != kTried) return false;
  if (!add_variables(layout, context, known)) return false;
  set_scope_variable(known);
  return inherited_scope(context) == kTried;
}

}  // namespace

void Tasks::learn() {
  variable_ = PyContextVar_New("bragg_scope", nullptr);
  PythonLayout layout;
  bragg_fill_python_layout(&layout);
  entered_offset_ = layout.context_entered;
  can_read_ = layout.is_valid != 0;
  PyObject* context = variable_ != nullptr && can_read_ ? PyContext_New() : nullptr;
  if (context != nullptr && PyContext_Enter(context) == 0) {
    if (!learn_in(layout, context, variable_)) set_scope_variable({});
    PyContext_Exit(context);
  }
  Py_XDECREF(context);
  PyErr_Clear();
}

void Tasks::tell() noexcept {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const uint64_t nodes = bragg_inherited_scope();
  PyObject* told = PyBytes_FromStringAndSize(reinterpret_cast<const char*>(&nodes), nodes != 0 ? sizeof nodes : 0);
  if (variable_ != nullptr) (void)set(variable_, told);
  Py_XDECREF(told);
  PyErr_Restore(type, value, traceback);  // also in place of an error of ours: then tasks do not inherit
}

}  // namespace bragg
