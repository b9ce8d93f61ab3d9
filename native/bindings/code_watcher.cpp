#include "bindings/code_watcher.h"

#include <Python.h>

#include "api/bragg_core.h"

namespace bragg {
namespace {

destructor free_code = nullptr;

void forget_and_free_code(PyObject* code) {
  bragg_forget_code(code);
  free_code(code);
}

// All code objects end here. A value in their `co_extra` with a function that frees it would tell the same, but must be
// set with the GIL, which most launches do not hold.
void watch_destructor() {
  if (PyCode_Type.tp_dealloc == forget_and_free_code) return;
  free_code = PyCode_Type.tp_dealloc;
  PyCode_Type.tp_dealloc = forget_and_free_code;
}

#if PY_VERSION_HEX >= 0x030C0000
int on_code_event(PyCodeEvent event, PyCodeObject* code) {
  if (event == PY_CODE_EVENT_DESTROY) bragg_forget_code(code);
  return 0;
}

[[nodiscard]] bool add_watcher() {
  if (PyCode_AddWatcher(on_code_event) >= 0) return true;
  PyErr_Clear();  // all 8 watchers are taken
  return false;
}
#else
[[nodiscard]] bool add_watcher() { return false; }
#endif

}  // namespace

void watch_code_objects() {
  if (!add_watcher()) watch_destructor();
}

}  // namespace bragg
