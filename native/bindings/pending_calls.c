// C, not C++: CPython's internal headers do not all compile as C++.
#define Py_BUILD_CORE 1

#include "bindings/pending_calls.h"

#include <Python.h>

#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"

const void* bragg_main_thread_state(void) {
  PyThreadState* state = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
  while (state != NULL && state->thread_id != _PyRuntime.main_thread) state = PyThreadState_Next(state);
  return state;
}

#if PY_VERSION_HEX < 0x030D0000

static struct _gil_runtime_state* main_gil(PyInterpreterState* interpreter) {
#if PY_VERSION_HEX >= 0x030C0000
  return interpreter->ceval.gil;
#else
  (void)interpreter;
  return &_PyRuntime.ceval.gil;
#endif
}

// Only where the main thread runs: any other one would look again and again for calls that it may not make.
int bragg_remind_main_thread(const void* main_state) {
  PyInterpreterState* interpreter = PyInterpreterState_Main();
  struct _gil_runtime_state* gil = main_gil(interpreter);
  if (main_state == NULL || gil == NULL || !_Py_atomic_load_relaxed(&gil->locked)) return 0;
  if ((const void*)_Py_atomic_load_relaxed(&gil->last_holder) != main_state) return 0;
  _Py_atomic_store_relaxed(&interpreter->ceval.eval_breaker, 1);
  return 1;
}

#else

int bragg_remind_main_thread(const void* main_state) {
  (void)main_state;
  return 0;
}

#endif
