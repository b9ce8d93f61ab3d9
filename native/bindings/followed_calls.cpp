#include "bindings/followed_calls.h"

#include <nanobind/stl/string.h>

#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>

#include "api/bragg_core.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace bragg {
namespace {

struct Followed {
  vectorcallfunc call;  // the object's own
  uint32_t frame;
};

// By object. One that died leaves its row: an object that gets its address gets the row, or is never followed.
std::mutex mutex;
std::unordered_map<PyObject*, Followed>& followed() {
  static auto& objects = *new std::unordered_map<PyObject*, Followed>;
  return objects;
}
constinit std::atomic<bool> is_following{false};
constinit thread_local bool is_inside = false;  // what a followed call calls is a part of it

Followed find(PyObject* object) noexcept {
  const std::lock_guard lock(mutex);
  return followed().find(object)->second;
}

bool is_outermost() noexcept {
  return !is_inside && is_following.load(std::memory_order_relaxed) && bragg_has_session() != 0;
}

void enter(uint32_t frame) noexcept {
  is_inside = true;
  bragg_scope_enter(frame);
}

void leave() noexcept {
  bragg_scope_exit();
  is_inside = false;
}

PyObject* call_followed(PyObject* object, PyObject* const* arguments, size_t count, PyObject* names) noexcept {
  const Followed found = find(object);
  if (!is_outermost()) return found.call(object, arguments, count, names);
  enter(found.frame);
  PyObject* result = found.call(object, arguments, count, names);
  leave();
  return result;
}

uint32_t frame_of(const std::string& name) {
  return bragg_operator_frame(name.data(), static_cast<uint32_t>(name.size()));
}

bool enter_call(const std::string& name) {
  if (!is_outermost()) return false;
  enter(frame_of(name));
  return true;
}

bool follow_calls(nb::handle object, const std::string& name) {
  const PyTypeObject* type = Py_TYPE(object.ptr());
  if ((type->tp_flags & Py_TPFLAGS_HAVE_VECTORCALL) == 0 || type->tp_vectorcall_offset <= 0) return false;
  auto& call = *reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(object.ptr()) + type->tp_vectorcall_offset);
  if (call == nullptr) return false;
  const uint32_t frame = frame_of(name);
  const std::lock_guard lock(mutex);
  if (call == call_followed) return true;
  followed()[object.ptr()] = {call, frame};
  call = call_followed;
  return true;
}

}  // namespace

void bind_followed_calls(nb::module_& module) {
  module.def("follow_calls", &follow_calls, "object"_a, "name"_a);
  module.def("enter_call", &enter_call, "name"_a);
  module.def("exit_call", &leave);
  module.def("record_followed_calls", [](bool wanted) { is_following.store(wanted); }, "wanted"_a);
}

}  // namespace bragg
