#include "bindings/scoped_function.h"

#include <structmember.h>

#include "bindings/scope_entry.h"

namespace bragg {
namespace {

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
  if (entered) leave_scope();
  return result;
}

PyObject* scoped_bind(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

// Other attributes are the function's: __code__, __defaults__, ...
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

}  // namespace

bool add_scoped_function_type() {
  scoped_function_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&scoped_spec));
  return scoped_function_type != nullptr;
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

}  // namespace bragg
