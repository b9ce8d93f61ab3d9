#include "bindings/code_watcher.h"

#include <Python.h>

#include "api/bragg_core.h"

namespace bragg {

#if PY_VERSION_HEX >= 0x030C0000

static int on_code_event(PyCodeEvent event, PyCodeObject* code) {
  if (event == PY_CODE_EVENT_DESTROY) bragg_forget_code(code);
  return 0;
}

void watch_code_objects() {
  if (PyCode_AddWatcher(on_code_event) < 0) PyErr_Clear();  // all 8 watchers taken: as on 3.11
}

#else

void watch_code_objects() {}

#endif

}  // namespace bragg
