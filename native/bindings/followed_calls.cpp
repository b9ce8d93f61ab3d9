#include "bindings/followed_calls.h"

#include <nanobind/stl/string.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "api/bragg_core.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace bragg {
namespace {

struct Followed {
  vectorcallfunc call;  // the object's own
  uint32_t frame;
  PyObject* name;
};

// By object. One that died leaves its row: an object that gets its address gets the row, or is never followed.
std::mutex mutex;
std::unordered_map<PyObject*, Followed>& followed() {
  static auto& objects = *new std::unordered_map<PyObject*, Followed>;
  return objects;
}
constinit std::atomic<bool> is_following{false};
// Odd within a followed call: what it calls is a part of it, except what the program is called back for.
constinit thread_local uint32_t nesting = 0;

// What is reported of each call when it has ended; guarded by the GIL.
constinit PyObject* observer = nullptr;

struct Open {
  PyObject* name = nullptr;  // none: nobody wants to know
  int64_t began_ns = 0;
};
constinit thread_local Open open_call{};

// As Python's time.perf_counter_ns.
int64_t perf_counter_ns() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// Threads: that of the call, with the GIL. Its exception, if there is one, stays what it is.
void tell(const Open& ended) noexcept {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  if (observer != nullptr) {
    PyObject* result = PyObject_CallFunction(observer, "OLL", ended.name, static_cast<long long>(ended.began_ns),
                                             static_cast<long long>(perf_counter_ns()));
    if (result == nullptr) PyErr_WriteUnraisable(observer);
    Py_XDECREF(result);
  }
  Py_DECREF(ended.name);
  PyErr_Restore(type, value, traceback);
}

Followed find(PyObject* object) noexcept {
  const std::lock_guard lock(mutex);
  return followed().find(object)->second;
}

bool is_outermost() noexcept {
  return nesting % 2 == 0 && is_following.load(std::memory_order_relaxed) && bragg_has_session() != 0;
}

void enter(uint32_t frame, PyObject* name) noexcept {
  if (nesting++ == 0 && observer != nullptr) open_call = {Py_NewRef(name), perf_counter_ns()};
  bragg_scope_enter(frame);
}

void leave() noexcept {
  bragg_scope_exit();
  if (--nesting == 0 && open_call.name != nullptr) tell(std::exchange(open_call, {}));
}

bool enter_callback() noexcept {
  const bool is_within_call = nesting % 2 != 0;
  if (is_within_call) ++nesting;
  return is_within_call;
}

PyObject* call_followed(PyObject* object, PyObject* const* arguments, size_t count, PyObject* names) noexcept {
  const Followed found = find(object);
  if (!is_outermost()) return found.call(object, arguments, count, names);
  enter(found.frame, found.name);
  PyObject* result = found.call(object, arguments, count, names);
  leave();
  return result;
}

uint32_t frame_of(const nb::str& name) {
  const auto text = nb::cast<std::string>(name);
  return bragg_operator_frame(text.data(), static_cast<uint32_t>(text.size()));
}

bool enter_call(const nb::str& name) {
  if (!is_outermost()) return false;
  enter(frame_of(name), name.ptr());
  return true;
}

void observe_calls(const nb::object& function) {
  PyObject* before = std::exchange(observer, function.is_none() ? nullptr : nb::object(function).release().ptr());
  Py_XDECREF(before);
}

bool follow_calls(nb::handle object, const nb::str& name) {
  const PyTypeObject* type = Py_TYPE(object.ptr());
  if ((type->tp_flags & Py_TPFLAGS_HAVE_VECTORCALL) == 0 || type->tp_vectorcall_offset <= 0) return false;
  auto& call = *reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(object.ptr()) + type->tp_vectorcall_offset);
  if (call == nullptr) return false;
  const uint32_t frame = frame_of(name);
  const std::lock_guard lock(mutex);
  if (call == call_followed) return true;
  Followed& row = followed()[object.ptr()];
  Py_XDECREF(row.name);
  row = {call, frame, Py_NewRef(name.ptr())};
  call = call_followed;
  return true;
}

}  // namespace

void bind_followed_calls(nb::module_& module) {
  module.def("follow_calls", &follow_calls, "object"_a, "name"_a);
  module.def("enter_call", &enter_call, "name"_a);
  module.def("exit_call", &leave);
  module.def("enter_callback", &enter_callback);
  module.def("exit_callback", [] { --nesting; });
  module.def("observe_calls", &observe_calls, "function"_a.none());
  module.def("record_followed_calls", [](bool wanted) { is_following.store(wanted); }, "wanted"_a);
}

}  // namespace bragg
