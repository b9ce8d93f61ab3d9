#include "bindings/thread_names.h"

namespace bragg {
namespace {

// The thread's own attribute, whatever its class makes of it: a new reference; null: it has none.
PyObject* attribute_of(const PyThreadState* state, const char* name) noexcept {
  if (PyErr_Occurred() != nullptr) return nullptr;
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "threading");
  if (module == nullptr || !PyModule_Check(module)) return nullptr;
  PyObject* active = PyDict_GetItemString(PyModule_GetDict(module), "_active");
  if (active == nullptr || !PyDict_CheckExact(active)) return nullptr;
  PyObject* key = PyLong_FromUnsignedLong(state->thread_id);
  PyObject* thread = key != nullptr ? PyDict_GetItemWithError(active, key) : nullptr;
  Py_XDECREF(key);
  PyObject* text = thread != nullptr ? PyUnicode_FromString(name) : nullptr;
  PyObject* value = text != nullptr ? PyObject_GenericGetAttr(thread, text) : nullptr;
  Py_XDECREF(text);
  if (value == nullptr) PyErr_Clear();
  return value;
}

}  // namespace

std::string name_of(const PyThreadState* state) {
  PyObject* name = attribute_of(state, "_name");
  const char* text = name != nullptr && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  std::string found = text != nullptr ? text : "";
  if (name != nullptr && text == nullptr) PyErr_Clear();
  Py_XDECREF(name);
  return found;
}

uint32_t thread_id_of(const PyThreadState* state) noexcept {
#if PY_VERSION_HEX >= 0x030B0000
  return static_cast<uint32_t>(state->native_thread_id);
#else
  PyObject* id = attribute_of(state, "_native_id");
  const unsigned long number = id != nullptr && PyLong_Check(id) ? PyLong_AsUnsignedLong(id) : 0;
  if (id == nullptr) return 0;
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  Py_DECREF(id);
  return static_cast<uint32_t>(number);
#endif
}

}  // namespace bragg
