#include "bindings/followed_calls.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "api/bragg_core.h"
#include "context/clock.h"
#include "data/call_steps.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace bragg {
namespace {

struct Followed {
  vectorcallfunc call;  // the object's own
  uint32_t frame;
  CallSteps::Function* steps;  // none: of a library, whose calls are no steps
  PyObject* watch;             // owned: sees arguments of the first calls, until it says no; none: no more
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

// Guarded by the GIL.
constinit bool counts_steps = false;
CallSteps& call_steps() {
  static auto& steps = *new CallSteps;
  return steps;
}

struct Open {
  CallSteps::Function* steps = nullptr;  // none: nobody wants to know
  int64_t began_ns = 0;
};
constinit thread_local Open open_call{};

Followed find(PyObject* object) noexcept {
  const std::lock_guard lock(mutex);
  return followed().find(object)->second;
}

bool is_outermost() noexcept {
  return nesting % 2 == 0 && is_following.load(std::memory_order_relaxed) && bragg_has_session() != 0;
}

// Threads: that of the call, with the GIL.
void enter(uint32_t frame, CallSteps::Function* steps) noexcept {
  if (nesting++ == 0 && counts_steps && steps != nullptr) open_call = {steps, monotonic_ns()};
  bragg_scope_enter(frame);
}

void leave() noexcept {
  bragg_scope_exit();
  if (--nesting != 0 || open_call.steps == nullptr) return;
  const Open ended = std::exchange(open_call, {});
  ended.steps->add(ended.began_ns, monotonic_ns(), bragg_now_ns());
}

bool enter_callback() noexcept {
  const bool is_within_call = nesting % 2 != 0;
  if (is_within_call) ++nesting;
  return is_within_call;
}

// Threads: that of the call, with the GIL.
void show_arguments(PyObject* object, PyObject* watch, PyObject* const* arguments, size_t count, PyObject* names) {
  PyObject* wants_more = PyObject_Vectorcall(watch, arguments, PyVectorcall_NARGS(count), names);
  if (wants_more == nullptr) PyErr_Clear();
  if (wants_more != Py_True) {
    const std::lock_guard lock(mutex);
    followed().find(object)->second.watch = nullptr;  // It stays alive: another thread may be about to call it.
  }
  Py_XDECREF(wants_more);
}

PyObject* call_followed(PyObject* object, PyObject* const* arguments, size_t count, PyObject* names) noexcept {
  const Followed found = find(object);
  if (!is_outermost()) return found.call(object, arguments, count, names);
  if (found.watch != nullptr) show_arguments(object, found.watch, arguments, count, names);
  enter(found.frame, found.steps);
  PyObject* result = found.call(object, arguments, count, names);
  leave();
  return result;
}

uint32_t frame_of(const std::string& text) {
  return bragg_operator_frame(text.data(), static_cast<uint32_t>(text.size()));
}

bool enter_call(const std::string& name) {
  if (!is_outermost()) return false;
  enter(frame_of(name), &call_steps().function(name));
  return true;
}

void count_call_steps(bool wanted) {
  counts_steps = wanted;
  if (wanted) call_steps().begin();
}

nb::dict steps_of(const CallSteps::Function& function) {
  nb::dict buckets, first, read;
  for (const auto& [bucket, count] : function.buckets) buckets[nb::str(std::to_string(bucket).c_str())] = count;
  first["began_ns"] = function.began_at_ns;
  first["ends_after_ns"] = function.ends_after_ns;
  first["last_ns"] = function.last_at_ns;
  read["count"] = function.count;
  read["total_ns"] = function.total_ns;
  read["in_steps_ns"] = function.total_ns;
  read["buckets"] = buckets;
  read["first_calls"] = first;
  read["called_ns"] = function.called_ns - function.longest_ns;
  return read;
}

nb::dict read_call_steps() {
  nb::dict functions;
  for (const auto& [name, function] : call_steps().functions())
    if (function.count > 1) functions[nb::str(name.data(), name.size())] = steps_of(function);
  return functions;
}

bool follow_calls(nb::handle object, const std::string& name, bool are_steps) {
  const PyTypeObject* type = Py_TYPE(object.ptr());
  if ((type->tp_flags & Py_TPFLAGS_HAVE_VECTORCALL) == 0 || type->tp_vectorcall_offset <= 0) return false;
  auto& call = *reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(object.ptr()) + type->tp_vectorcall_offset);
  if (call == nullptr) return false;
  const uint32_t frame = frame_of(name);
  const std::lock_guard lock(mutex);
  if (call == call_followed) return true;
  followed()[object.ptr()] = {call, frame, are_steps ? &call_steps().function(name) : nullptr, nullptr};
  call = call_followed;
  return true;
}

bool watch_arguments(nb::handle object, nb::object watch) {
  const std::lock_guard lock(mutex);
  const auto found = followed().find(object.ptr());
  if (found == followed().end()) return false;
  found->second.watch = watch.release().ptr();
  return true;
}

}  // namespace

void bind_followed_calls(nb::module_& module) {
  module.def("follow_calls", &follow_calls, "object"_a, "name"_a, "are_steps"_a = true);
  module.def("watch_arguments", &watch_arguments, "object"_a, "watch"_a);
  module.def("enter_call", &enter_call, "name"_a);
  module.def("exit_call", &leave);
  module.def("enter_callback", &enter_callback);
  module.def("exit_callback", [] { --nesting; });
  module.def("count_call_steps", &count_call_steps, "wanted"_a);
  module.def("read_call_steps", &read_call_steps);
  module.def("record_followed_calls", [](bool wanted) { is_following.store(wanted); }, "wanted"_a);
}

}  // namespace bragg
