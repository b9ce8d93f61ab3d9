#include "bindings/scope_type.h"

#include <structmember.h>

#include <array>
#include <cstdint>

#include "bindings/scope_entry.h"
#include "bindings/scoped_function.h"
#include "context/nested_flags.h"

namespace bragg {
namespace {

struct Scope {
  PyObject_HEAD PyObject* name;
  PyObject* metrics;    // a mapping of names to values; nullptr: none
  NestedFlags entered;  // whether a session existed at each enter
};

constexpr size_t kMaxFreeScopes = 64;
std::array<Scope*, kMaxFreeScopes> free_scopes;  // GIL
size_t free_scope_count = 0;
PyTypeObject* scope_type = nullptr;

PyObject* make_scope(PyTypeObject* type, PyObject* name, PyObject* metrics) {
  if (!PyUnicode_Check(name)) return PyErr_Format(PyExc_TypeError, "a scope's name is a string, not %R", name);
  if (metrics == Py_None) metrics = nullptr;
  if (metrics != nullptr && !PyMapping_Check(metrics))
    return PyErr_Format(PyExc_TypeError, "a scope's metrics are a mapping of names to values, not %R", metrics);
  Scope* scope;
  if (free_scope_count > 0 && type == scope_type) {
    scope = free_scopes[--free_scope_count];
    PyObject_Init(reinterpret_cast<PyObject*>(scope), type);
  } else {
    scope = reinterpret_cast<Scope*>(type->tp_alloc(type, 0));
    if (scope == nullptr) return nullptr;
  }
  scope->name = Py_NewRef(name);
  scope->metrics = Py_XNewRef(metrics);
  scope->entered = NestedFlags(false);
  return reinterpret_cast<PyObject*>(scope);
}

PyObject* scope_vectorcall(PyObject* type, PyObject* const* arguments, size_t flags, PyObject* keywords) {
  constexpr Py_ssize_t kParameters = 2;
  constexpr const char* kNames[kParameters] = {"name", "metrics"};
  const Py_ssize_t positional = PyVectorcall_NARGS(flags);
  const Py_ssize_t named = keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0;
  PyObject* given[kParameters] = {nullptr, nullptr};
  bool is_valid = positional <= kParameters;
  for (Py_ssize_t i = 0; is_valid && i < positional; ++i) given[i] = arguments[i];
  for (Py_ssize_t i = 0; is_valid && i < named; ++i) {
    Py_ssize_t parameter = 0;
    while (parameter < kParameters &&
           PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, i), kNames[parameter]) != 0)
      ++parameter;
    is_valid = parameter < kParameters && given[parameter] == nullptr;
    if (is_valid) given[parameter] = arguments[positional + i];
  }
  if (is_valid && given[0] != nullptr) return make_scope(reinterpret_cast<PyTypeObject*>(type), given[0], given[1]);
  PyErr_SetString(PyExc_TypeError, "scope(name, metrics=None) takes a name and a mapping of metrics");
  return nullptr;
}

PyObject* scope_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  PyObject* name = nullptr;
  PyObject* metrics = nullptr;
  static const char* const names[] = {"name", "metrics", nullptr};
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "U|O:scope", const_cast<char**>(names), &name, &metrics))
    return nullptr;
  return make_scope(type, name, metrics);
}

void scope_dealloc(PyObject* self) {
  auto* scope = reinterpret_cast<Scope*>(self);
  Py_CLEAR(scope->name);
  Py_CLEAR(scope->metrics);
  PyTypeObject* type = Py_TYPE(self);
  if (type == scope_type && free_scope_count < kMaxFreeScopes) {
    free_scopes[free_scope_count++] = scope;
  } else {
    type->tp_free(self);
  }
  Py_DECREF(type);
}

PyObject* scope_enter(PyObject* self, PyObject*) {
  auto* scope = reinterpret_cast<Scope*>(self);
  bool entered = false;
  if (enter_with_metrics(scope->name, scope->metrics, entered, scope) != 0) return nullptr;
  scope->entered.push(entered);
  return Py_NewRef(self);
}

PyObject* scope_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  auto* scope = reinterpret_cast<Scope*>(self);
  if (scope->entered.pop()) leave_scope(scope);
  Py_RETURN_NONE;
}

PyObject* scope_decorate(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* keywords) {
  if (PyVectorcall_NARGS(flags) != 1 || (keywords != nullptr && PyTuple_GET_SIZE(keywords) != 0)) {
    PyErr_SetString(PyExc_TypeError, "a scope is called with the function it decorates");
    return nullptr;
  }
  auto* scope = reinterpret_cast<Scope*>(self);
  return make_scoped_function(scope->name, scope->metrics, arguments[0]);
}

PyObject* scope_call(PyObject* self, PyObject* arguments, PyObject* keywords) {
  if (PyTuple_GET_SIZE(arguments) != 1 || (keywords != nullptr && PyDict_GET_SIZE(keywords) != 0))
    return scope_decorate(self, nullptr, 0, nullptr);
  PyObject* const function = PyTuple_GET_ITEM(arguments, 0);
  return scope_decorate(self, &function, 1, nullptr);
}

PyObject* scope_repr(PyObject* self) { return PyUnicode_FromFormat("scope(%R)", reinterpret_cast<Scope*>(self)->name); }

PyMethodDef scope_methods[] = {
    {"__enter__", scope_enter, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(scope_exit)), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef scope_members[] = {
    {"name", T_OBJECT, offsetof(Scope, name), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

constexpr const char* kScopeDoc =
    "scope(name, metrics=None)\n--\n\n"
    "A named region of the program: context manager and decorator, reusable and re-entrant. Each time it is entered, "
    "`metrics` ({name: value}) are added to it.";

PyType_Slot scope_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(scope_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(scope_dealloc)},
    {Py_tp_call, reinterpret_cast<void*>(scope_call)},
    {Py_tp_repr, reinterpret_cast<void*>(scope_repr)},
    {Py_tp_methods, scope_methods},
    {Py_tp_members, scope_members},
    {Py_tp_doc, const_cast<char*>(kScopeDoc)},
    {0, nullptr},
};

PyType_Spec scope_spec = {"bragg._core.Scope", sizeof(Scope), 0, Py_TPFLAGS_DEFAULT, scope_slots};

PyObject* enter_scope(PyObject*, PyObject* name) {
  if (!PyUnicode_Check(name)) return PyErr_Format(PyExc_TypeError, "a scope's name is a string, not %R", name);
  (void)enter_named(name);
  return PyLong_FromUnsignedLong(bragg_context_depth());
}

PyObject* exit_scope(PyObject*, PyObject*) {
  leave_scope();
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"enter_scope", enter_scope, METH_O, "enter_scope(name, /)\n--\n\nOpen a scope; returns the depth it has."},
    {"exit_scope", exit_scope, METH_NOARGS, "exit_scope()\n--\n\nClose the latest scope that enter_scope opened."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool add_scope_type(PyObject* module) {
  scope_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&scope_spec));
  if (scope_type == nullptr || !add_scoped_function_type()) return false;
  scope_type->tp_vectorcall = scope_vectorcall;
  return PyModule_AddObjectRef(module, "Scope", reinterpret_cast<PyObject*>(scope_type)) == 0 &&
         PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace bragg
