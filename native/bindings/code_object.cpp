#include "bindings/code_object.h"

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "bindings/thread_place.h"

namespace bragg {

#ifdef Py_GIL_DISABLED
bool lives(const void*) noexcept { return false; }  // frames cannot be read at all
#else
bool lives(const void* code) noexcept {
  struct {
    int64_t n_references;
    const void* type;
  } head{};
  static_assert(offsetof(PyObject, ob_type) == sizeof head.n_references);
  return code != nullptr && peek_bytes(code, &head, sizeof head) && head.type == &PyCode_Type &&
         head.n_references > 0 && head.n_references <= std::numeric_limits<int32_t>::max();
}
#endif

bool has_instruction(const RawFrame& frame) noexcept {
#if PY_VERSION_HEX >= 0x030B0000
  constexpr Py_ssize_t kUnitBytes = 2;
  const Py_ssize_t n_bytes = Py_SIZE(static_cast<const PyVarObject*>(frame.code)) * kUnitBytes;
#else
  const Py_ssize_t n_bytes = PyBytes_GET_SIZE(static_cast<const PyCodeObject*>(frame.code)->co_code);
#endif
  return static_cast<Py_ssize_t>(frame.instruction_offset) < n_bytes;
}

}  // namespace bragg
