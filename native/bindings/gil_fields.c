// C, not C++: CPython's internal headers do not all compile as C++.
#define Py_BUILD_CORE 1

#include "bindings/gil_fields.h"

#include <Python.h>

#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#if PY_VERSION_HEX >= 0x030D0000
#include "internal/pycore_ceval.h"
#endif

int bragg_find_gil(struct bragg_gil_fields* fields) {
  PyInterpreterState* interpreter = PyInterpreterState_Main();
  if (interpreter == NULL) return 0;
#if PY_VERSION_HEX >= 0x030C0000
  struct _gil_runtime_state* gil = interpreter->ceval.gil;
#else
  struct _gil_runtime_state* gil = &_PyRuntime.ceval.gil;
#endif
  if (gil == NULL) return 0;
  fields->interval_us = &gil->interval;
  fields->n_switches = &gil->switch_number;
#if PY_VERSION_HEX >= 0x030D0000
  _Static_assert(_PY_GIL_DROP_REQUEST_BIT == 1, "bit 0");
  const PyThreadState* holder = __atomic_load_n(&gil->last_holder, __ATOMIC_RELAXED);
  fields->request = holder != NULL ? &holder->eval_breaker : NULL;
#else
  fields->request = &interpreter->ceval.gil_drop_request;
#endif
  return 1;
}
