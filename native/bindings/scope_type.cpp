#include "bindings/scope_type.h"

#include <structmember.h>

#include <array>
#include <cstdint>

#include "api/bragg_core.h"

namespace bragg {
namespace {

// Name -> frame id
// -------------------------------------------------------------------------------------------------------

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
    Py_INCREF(name);
    Py_XDECREF(entry.name);
    entry = {name, bragg_scope_frame(text, static_cast<uint32_t>(size))};
    return entry.frame;
  }

 private:
  struct Entry {
    PyObject* name = nullptr;
    uint32_t frame = 0;
  };
  std::array<Entry, 1024> entries_;
};

NameCache& name_cache() {
  static NameCache& cache = *new NameCache;
  return cache;
}

[[nodiscard]] bool enter(PyObject* name) {
  if (bragg_has_session() == 0) return false;
  bragg_scope_enter(name_cache().frame_of(name));
  return true;
}

// Metric values of a scope, at its node. -1: a Python exception is set.
[[nodiscard]] int record_metrics(PyObject* metrics) {
  if (bragg_is_recording() == 0) return 0;
  static PyObject* record = nullptr;
  if (record == nullptr) {
    PyObject* module = PyImport_ImportModule("bragg.record.metric_values");
    if (module == nullptr) return -1;
    record = PyObject_GetAttrString(module, "record_metrics");
    Py_DECREF(module);
    if (record == nullptr) return -1;
  }
  PyObject* result = PyObject_CallOneArg(record, metrics);
  Py_XDECREF(result);
  return result != nullptr ? 0 : -1;
}

// Opens a scope and records its metrics, if it has any. `entered`: a session exists. -1: an exception is set, and the
// scope is not open.
[[nodiscard]] int enter_with_metrics(PyObject* name, PyObject* metrics, bool& entered) {
  entered = enter(name);
  if (!entered || metrics == nullptr || record_metrics(metrics) == 0) return 0;
  bragg_scope_exit();
  return -1;
}

// ScopedFunction: a function that runs inside a scope
// ----------------------------------------------------------------------

struct ScopedFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* name;
  PyObject* metrics;
  PyObject* function;
  PyObject* attributes;
  PyObject* weak_references;
};

PyTypeObject* scoped_function_type = nullptr;

PyObject* scoped_call(PyObject* self, PyObject* const* arguments, size_t count, PyObject* keywords) {
  auto* scoped = reinterpret_cast<ScopedFunction*>(self);
  bool entered = false;
  if (enter_with_metrics(scoped->name, scoped->metrics, entered) != 0) return nullptr;
  PyObject* result = PyObject_Vectorcall(scoped->function, arguments, count, keywords);
  if (entered) bragg_scope_exit();
  return result;
}

PyObject* scoped_bind(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

// What the scope does not know, the function does: __code__, __defaults__, ...
PyObject* scoped_getattr(PyObject* self, PyObject* name) {
  PyObject* value = PyObject_GenericGetAttr(self, name);
  if (value != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
  PyErr_Clear();
  return PyObject_GetAttr(reinterpret_cast<ScopedFunction*>(self)->function, name);
}

PyObject* scoped_repr(PyObject* self) {
  auto* scoped = reinterpret_cast<ScopedFunction*>(self);
  return PyUnicode_FromFormat("<scope %R around %R>", scoped->name, scoped->function);
}

int scoped_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* scoped = reinterpret_cast<ScopedFunction*>(self);
  Py_VISIT(scoped->name);
  Py_VISIT(scoped->metrics);
  Py_VISIT(scoped->function);
  Py_VISIT(scoped->attributes);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

int scoped_clear(PyObject* self) {
  auto* scoped = reinterpret_cast<ScopedFunction*>(self);
  Py_CLEAR(scoped->name);
  Py_CLEAR(scoped->metrics);
  Py_CLEAR(scoped->function);
  Py_CLEAR(scoped->attributes);
  return 0;
}

void scoped_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (reinterpret_cast<ScopedFunction*>(self)->weak_references != nullptr) PyObject_ClearWeakRefs(self);
  (void)scoped_clear(self);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef scoped_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ScopedFunction, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(ScopedFunction, attributes), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ScopedFunction, weak_references), READONLY, nullptr},
    {"__wrapped__", T_OBJECT, offsetof(ScopedFunction, function), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef scoped_properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot scoped_slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(scoped_bind)},
    {Py_tp_getattro, reinterpret_cast<void*>(scoped_getattr)},
    {Py_tp_repr, reinterpret_cast<void*>(scoped_repr)},
    {Py_tp_traverse, reinterpret_cast<void*>(scoped_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(scoped_clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(scoped_dealloc)},
    {Py_tp_members, scoped_members},
    {Py_tp_getset, scoped_properties},
    {0, nullptr},
};

PyType_Spec scoped_spec = {"bragg._core.ScopedFunction", sizeof(ScopedFunction), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                               Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           scoped_slots};

// A scope around a coroutine or generator function would end when the object is made, not when it has run.
[[nodiscard]] bool runs_when_called(PyObject* function) {
  PyObject* code = PyObject_GetAttrString(function, "__code__");
  if (code == nullptr) {
    PyErr_Clear();
    return true;
  }
  const int flags = PyCode_Check(code) ? reinterpret_cast<PyCodeObject*>(code)->co_flags : 0;
  Py_DECREF(code);
  return (flags & (CO_COROUTINE | CO_GENERATOR | CO_ASYNC_GENERATOR)) == 0;
}

PyObject* copy_attribute(PyObject* to, PyObject* from, const char* name) {
  PyObject* value = PyObject_GetAttrString(from, name);
  if (value == nullptr) {
    PyErr_Clear();
    return to;
  }
  const int failed = PyObject_SetAttrString(to, name, value);
  Py_DECREF(value);
  return failed == 0 ? to : nullptr;
}

PyObject* make_scoped_function(PyObject* name, PyObject* metrics, PyObject* function) {
  if (!PyCallable_Check(function))
    return PyErr_Format(PyExc_TypeError, "a scope decorates a function, not %R", function);
  if (!runs_when_called(function))
    return PyErr_Format(PyExc_TypeError, "%R is a coroutine or generator function: use `with scope(%R):` in its body",
                        function, name);
  auto* scoped = PyObject_GC_New(ScopedFunction, scoped_function_type);
  if (scoped == nullptr) return nullptr;
  scoped->vectorcall = scoped_call;
  scoped->name = Py_NewRef(name);
  scoped->metrics = Py_XNewRef(metrics);
  scoped->function = Py_NewRef(function);
  scoped->attributes = nullptr;
  scoped->weak_references = nullptr;
  auto* self = reinterpret_cast<PyObject*>(scoped);
  PyObject_GC_Track(self);
  for (const char* attribute : {"__module__", "__name__", "__qualname__", "__doc__"})
    if (copy_attribute(self, function, attribute) == nullptr) {
      Py_DECREF(self);
      return nullptr;
    }
  return self;
}

// Scope
// ------------------------------------------------------------------------------------------------------------------

struct Scope {
  PyObject_HEAD PyObject* name;
  PyObject* metrics;  // a mapping of names to values; nullptr: none
  uint64_t entered;   // one bit a nesting level: whether a session existed at its enter
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
  scope->entered = 0;
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
  if (enter_with_metrics(scope->name, scope->metrics, entered) != 0) return nullptr;
  scope->entered = scope->entered << 1 | (entered ? 1 : 0);
  return Py_NewRef(self);
}

PyObject* scope_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  auto* scope = reinterpret_cast<Scope*>(self);
  if ((scope->entered & 1) != 0) bragg_scope_exit();
  scope->entered >>= 1;
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
  (void)enter(name);
  return PyLong_FromUnsignedLong(bragg_context_depth());
}

PyObject* exit_scope(PyObject*, PyObject*) {
  bragg_scope_exit();
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"enter_scope", enter_scope, METH_O, "enter_scope(name, /)\n--\n\nOpen a scope; returns the depth it has."},
    {"exit_scope", exit_scope, METH_NOARGS, "exit_scope()\n--\n\nClose the innermost scope of this thread."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool add_scope_type(PyObject* module) {
  scoped_function_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&scoped_spec));
  scope_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&scope_spec));
  if (scoped_function_type == nullptr || scope_type == nullptr) return false;
  scope_type->tp_vectorcall = scope_vectorcall;
  return PyModule_AddObjectRef(module, "Scope", reinterpret_cast<PyObject*>(scope_type)) == 0 &&
         PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace bragg
