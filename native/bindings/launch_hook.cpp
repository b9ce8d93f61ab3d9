#include "bindings/launch_hook.h"

#include <nanobind/nanobind.h>
#include <structmember.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "api/kernel_context.h"
#include "bindings/metrics_binding.h"

namespace bragg {
namespace {

// A reference that is dropped when the scope ends.
class Reference {
 public:
  explicit Reference(PyObject* object) : object_(object) {}
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  ~Reference() { Py_XDECREF(object_); }
  [[nodiscard]] PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_;
};

struct LaunchHook {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* convert;   // (key, value) -> (metric id, number), None: not a metric, NotImplemented: left to `record`
  PyObject* record;    // ({key: value}): adds them where this thread is
  PyObject* report;    // (function, error): a launch_metadata function failed
  PyObject* then;      // what is called next, or nullptr
  PyObject* calls;     // the list of what `then` calls, or nullptr: unknown
  PyObject* wanted;    // name -> bool, or nullptr: every kernel
  PyObject* chosen;    // results of `wanted`, by name
  PyObject* floats;    // ids of metrics of fractional numbers, by key
  PyObject* integers;  // and of whole ones
};

PyTypeObject* launch_hook_type = nullptr;
// Names that Triton's launches carry; what else is in their dictionary, the program's function gave.
PyObject* text_name = nullptr;
PyObject* text_function = nullptr;
PyObject* text_stream = nullptr;
PyObject* text_data = nullptr;
PyObject* text_extras = nullptr;
PyObject* text_get = nullptr;
constexpr Py_ssize_t kReservedKeys = 3;

// This thread runs a launch_metadata function: kernels that it launches belong to it and are not asked again.
thread_local bool is_asking = false;

// The state frame of each kernel's launch_metadata function. The cache keeps its strings alive.
uint32_t state_frame_of(PyObject* name) {
  struct Entry {
    PyObject* name = nullptr;
    uint32_t frame = 0;
  };
  static std::array<Entry, 256> entries;
  Entry& entry = entries[(reinterpret_cast<uintptr_t>(name) >> 4) % entries.size()];
  if (entry.name == name) return entry.frame;
  std::string text = "__proton_launch_metadata";  // what readers of Proton's files look for
  if (const char* kernel = PyUnicode_AsUTF8(name); kernel != nullptr) text.append(":").append(kernel);
  PyErr_Clear();
  Py_XSETREF(entry.name, Py_NewRef(name));
  entry.frame = bragg_state_frame(text.data(), static_cast<uint32_t>(text.size()));
  return entry.frame;
}

// 1: yes, 0: no, -1: raised.
int is_wanted(LaunchHook* hook, PyObject* name) {
  if (hook->wanted == nullptr) return 1;
  if (PyObject* known = PyDict_GetItemWithError(hook->chosen, name)) return known == Py_True;
  if (PyErr_Occurred() != nullptr) return -1;
  const Reference wanted(Py_NewRef(hook->wanted));  // the call may choose anew
  const Reference answer(PyObject_CallOneArg(wanted.get(), name));
  const int is_true = answer ? PyObject_IsTrue(answer.get()) : -1;
  return is_true < 0 || PyDict_SetItem(hook->chosen, name, is_true ? Py_True : Py_False) < 0 ? -1 : is_true;
}

// Hands the pending exception to `report`; not what ends the program.
bool report_failure(LaunchHook* hook, PyObject* function) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return false;
  PyObject *type = nullptr, *error = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &error, &traceback);
  PyErr_NormalizeException(&type, &error, &traceback);
  const Reference owned_type(type), owned_error(error), owned_traceback(traceback);
  return static_cast<bool>(Reference(PyObject_CallFunctionObjArgs(hook->report, function, error, nullptr)));
}

// The dictionary of a launch after the program's function was asked. Null: it raised.
PyObject* ask(PyObject* metadata, PyObject* kernel) {
  bragg_state_enter(state_frame_of(kernel));
  is_asking = true;
  PyObject* data = PyObject_CallMethodNoArgs(metadata, text_get);
  is_asking = false;
  bragg_state_exit();
  if (data == nullptr || PyDict_Check(data)) return data;
  PyErr_Format(PyExc_TypeError, "launch metadata is a dictionary, not %R", data);
  Py_DECREF(data);
  return nullptr;
}

struct Values {
  std::vector<uint32_t> metrics;
  std::vector<uint64_t> bits;
  PyObject* others = nullptr;  // what is not a number: tensors

  Values() = default;
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  ~Values() { Py_XDECREF(others); }

  [[nodiscard]] bool add(PyObject* metric, PyObject* number) {
    const auto id = static_cast<uint32_t>(PyLong_AsUnsignedLong(metric));
    try {
      bits.push_back(metric_bits(id, number));
    } catch (nanobind::python_error& error) {
      error.restore();
      return false;
    } catch (const std::exception& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
      return false;
    }
    metrics.push_back(id);
    return true;
  }
};

bool take_value(LaunchHook* hook, PyObject* key, PyObject* value, Values& values) {
  const bool is_whole = PyLong_CheckExact(value);
  if (is_whole || PyFloat_CheckExact(value)) {
    PyObject* metric = PyDict_GetItemWithError(hook->floats, key);
    if (metric == nullptr && is_whole && PyErr_Occurred() == nullptr)
      metric = PyDict_GetItemWithError(hook->integers, key);
    if (metric != nullptr) return values.add(metric, value);
    if (PyErr_Occurred() != nullptr) return false;
  }
  const Reference converted(PyObject_CallFunctionObjArgs(hook->convert, key, value, nullptr));
  if (!converted) return false;
  if (converted.get() == Py_None) return true;
  if (converted.get() == Py_NotImplemented) {
    if (values.others == nullptr) values.others = PyDict_New();
    return values.others != nullptr && PyDict_SetItem(values.others, key, value) == 0;
  }
  PyObject *metric = nullptr, *number = nullptr;
  if (!PyArg_ParseTuple(converted.get(), "OO", &metric, &number)) return false;
  PyObject* const known = PyFloat_Check(number) ? hook->floats : hook->integers;
  return PyDict_SetItem(known, key, metric) == 0 && values.add(metric, number);
}

bool is_reserved(PyObject* key) {
  for (PyObject* reserved : {text_name, text_function, text_stream})
    if (key == reserved || (PyUnicode_Check(key) && PyUnicode_Compare(key, reserved) == 0)) return true;
  return false;
}

Reference item(PyObject* dictionary, PyObject* key) { return Reference(Py_XNewRef(PyDict_GetItem(dictionary, key))); }

// False: raised what ends the program. A value that cannot be taken does not keep the others from being. The program
// may change the dictionary meanwhile.
bool expect(LaunchHook* hook, PyObject* data, PyObject* kernel, PyObject* function_asked) {
  const Reference function = item(data, text_function);
  const Reference name = item(data, text_name);
  if (!function || !PyLong_Check(function.get()) || !name || !PyUnicode_Check(name.get())) return true;
  const bool is_renamed = name.get() != kernel && PyUnicode_Compare(name.get(), kernel) != 0;
  if (const int wanted = is_renamed ? is_wanted(hook, name.get()) : 1; wanted != 1)
    return wanted == 0 || report_failure(hook, function_asked);
  Values values;
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t position = 0; PyDict_Next(data, &position, &key, &value);) {
    if (is_reserved(key)) continue;
    const Reference kept_key(Py_NewRef(key)), kept_value(Py_NewRef(value));
    if (!take_value(hook, key, value, values) && !report_failure(hook, function_asked)) return false;
  }
  const char* symbol = PyUnicode_AsUTF8(kernel);
  const char* shown = is_renamed ? PyUnicode_AsUTF8(name.get()) : nullptr;
  if (symbol == nullptr || (is_renamed && shown == nullptr)) return report_failure(hook, function_asked);
  void* const handle = PyLong_AsVoidPtr(function.get());
  if (values.others != nullptr) {
    bragg_kernel_enter(handle, shown, symbol);
    const Reference recorded(PyObject_CallOneArg(hook->record, values.others));
    bragg_state_exit();
    if (!recorded && !report_failure(hook, function_asked)) return false;
  }
  if (is_renamed || !values.metrics.empty())
    bragg_expect_launch(handle, shown, values.metrics.data(), values.bits.data(),
                        static_cast<uint32_t>(values.metrics.size()));
  return true;
}

// What Triton says of a launch, taken over. False: raised what ends the program.
bool take(LaunchHook* hook, PyObject* metadata) {
  const Reference extras(PyObject_GetAttr(metadata, text_extras));
  const Reference data(extras ? PyObject_GetAttr(metadata, text_data) : nullptr);
  if (!data || !PyList_Check(extras.get()) || !PyDict_Check(data.get())) {  // not Triton's: nothing to take
    PyErr_Clear();
    return true;
  }
  const bool is_pending = PyList_GET_SIZE(extras.get()) > 0;
  PyObject* kernel = PyDict_GetItem(data.get(), text_name);
  // Another hook may have asked already.
  if ((!is_pending && PyDict_GET_SIZE(data.get()) <= kReservedKeys) || kernel == nullptr || !PyUnicode_Check(kernel))
    return true;
  const Reference kept_kernel(Py_NewRef(kernel));
  const Reference first(is_pending ? Py_NewRef(PyList_GET_ITEM(extras.get(), 0)) : nullptr);
  PyObject* function = first && PyTuple_Check(first.get()) && PyTuple_GET_SIZE(first.get()) > 0
                           ? PyTuple_GET_ITEM(first.get(), 0)
                           : kernel;
  const int wanted = is_wanted(hook, kernel);
  if (wanted == 0) return true;
  const Reference answer(wanted < 0 ? nullptr : is_pending ? ask(metadata, kernel) : Py_NewRef(data.get()));
  return answer ? expect(hook, answer.get(), kernel, function) : report_failure(hook, function);
}

PyObject* launch_hook_call(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* keywords) {
  auto* hook = reinterpret_cast<LaunchHook*>(self);
  if (PyVectorcall_NARGS(flags) != 1 || keywords != nullptr) {
    PyErr_SetString(PyExc_TypeError, "a launch hook takes what Triton says of a launch");
    return nullptr;
  }
  if (bragg_is_recording() != 0 && !is_asking && arguments[0] != Py_None && !take(hook, arguments[0])) return nullptr;
  if (hook->then == nullptr || (hook->calls != nullptr && PyList_GET_SIZE(hook->calls) == 0)) Py_RETURN_NONE;
  return PyObject_CallOneArg(hook->then, arguments[0]);
}

PyObject* launch_hook_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  PyObject *convert = nullptr, *record = nullptr, *report = nullptr, *then = Py_None;
  static const char* const names[] = {"convert", "record", "report", "then", nullptr};
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOO|O:LaunchHook", const_cast<char**>(names), &convert,
                                   &record, &report, &then))
    return nullptr;
  auto* hook = reinterpret_cast<LaunchHook*>(type->tp_alloc(type, 0));
  if (hook == nullptr) return nullptr;
  hook->vectorcall = launch_hook_call;
  hook->convert = Py_NewRef(convert);
  hook->record = Py_NewRef(record);
  hook->report = Py_NewRef(report);
  hook->then = then == Py_None ? nullptr : Py_NewRef(then);
  hook->calls = PyObject_GetAttrString(then, "calls");
  PyErr_Clear();
  if (hook->calls != nullptr && !PyList_Check(hook->calls)) Py_CLEAR(hook->calls);
  hook->wanted = nullptr;
  hook->chosen = PyDict_New();
  hook->floats = PyDict_New();
  hook->integers = PyDict_New();
  if (hook->chosen != nullptr && hook->floats != nullptr && hook->integers != nullptr)
    return reinterpret_cast<PyObject*>(hook);
  Py_DECREF(hook);
  return nullptr;
}

PyObject* launch_hook_choose(PyObject* self, PyObject* wanted) {
  auto* hook = reinterpret_cast<LaunchHook*>(self);
  Py_XSETREF(hook->wanted, wanted == Py_None ? nullptr : Py_NewRef(wanted));
  PyDict_Clear(hook->chosen);
  Py_RETURN_NONE;
}

int launch_hook_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* hook = reinterpret_cast<LaunchHook*>(self);
  for (PyObject* owned : {hook->convert, hook->record, hook->report, hook->then, hook->calls, hook->wanted,
                          hook->chosen, hook->floats, hook->integers, reinterpret_cast<PyObject*>(Py_TYPE(self))})
    Py_VISIT(owned);
  return 0;
}

int launch_hook_clear(PyObject* self) {
  auto* hook = reinterpret_cast<LaunchHook*>(self);
  for (PyObject** owned : {&hook->convert, &hook->record, &hook->report, &hook->then, &hook->calls, &hook->wanted,
                           &hook->chosen, &hook->floats, &hook->integers})
    Py_CLEAR(*owned);
  return 0;
}

void launch_hook_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  (void)launch_hook_clear(self);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef launch_hook_methods[] = {
    {"choose", launch_hook_choose, METH_O,
     "choose(wanted, /)\n--\n\nAsk only kernels whose name `wanted` accepts; None: all."},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef launch_hook_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(LaunchHook, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot launch_hook_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(launch_hook_new)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_dealloc, reinterpret_cast<void*>(launch_hook_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(launch_hook_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(launch_hook_clear)},
    {Py_tp_methods, reinterpret_cast<void*>(launch_hook_methods)},
    {Py_tp_members, reinterpret_cast<void*>(launch_hook_members)},
    {0, nullptr},
};

PyType_Spec launch_hook_spec = {"bragg._core.LaunchHook", sizeof(LaunchHook), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                                launch_hook_slots};

}  // namespace

bool add_launch_hook_type(PyObject* module) {
  for (auto& [text, value] : {std::pair{&text_name, "name"},
                              {&text_function, "function"},
                              {&text_stream, "stream"},
                              {&text_data, "data"},
                              {&text_extras, "extras"},
                              {&text_get, "get"}})
    if ((*text = PyUnicode_InternFromString(value)) == nullptr) return false;
  launch_hook_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&launch_hook_spec));
  return launch_hook_type != nullptr &&
         PyModule_AddObjectRef(module, "LaunchHook", reinterpret_cast<PyObject*>(launch_hook_type)) == 0;
}

}  // namespace bragg
