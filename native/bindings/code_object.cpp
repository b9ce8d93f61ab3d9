#include "bindings/code_object.h"

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "context/peeked_memory.h"

namespace bragg {
namespace {

// Whether there is still a code object: one that was freed has no references, or in their place a pointer to other free
// memory. Whether its frame runs does not tell: it may have returned.
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

// Whether the code, which lives, has such an instruction: of a frame that changed while it was read it may not.
bool has_instruction(const RawFrame& frame) noexcept {
#if PY_VERSION_HEX >= 0x030B0000
  constexpr Py_ssize_t kUnitBytes = 2;
  const Py_ssize_t n_bytes = Py_SIZE(static_cast<const PyVarObject*>(frame.code)) * kUnitBytes;
#else
  const Py_ssize_t n_bytes = PyBytes_GET_SIZE(static_cast<const PyCodeObject*>(frame.code)->co_code);
#endif
  return static_cast<Py_ssize_t>(frame.instruction_offset) < n_bytes;
}

bool runs(PythonFrameIterator now, const RawFrame& frame) noexcept {
  for (RawFrame raw{}; now.next(raw);)
    if (raw.is_of(frame)) return true;
  return false;
}

}  // namespace

LivingFrames::LivingFrames(const ThreadPlace& place, const PythonFrameIterator& now) noexcept {
  for (const RawFrame& frame : place.frames()) {
    if ((runs(now, frame) || lives(frame.code)) && has_instruction(frame))
      frames_[n_frames_++] = {frame.code, frame.frame, frame.instruction_offset};
    else
      n_frames_ = 0;
  }
}

}  // namespace bragg
