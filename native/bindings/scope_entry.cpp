#include "bindings/scope_entry.h"

namespace bragg {

int record_metrics(PyObject* metrics) {
  if (bragg_is_recording() == 0) return 0;
  static PyObject* record = nullptr;
  if (record == nullptr) {
    PyObject* module = PyImport_ImportModule("bragg.record.inside.metric_values");
    if (module == nullptr) return -1;
    record = PyObject_GetAttrString(module, "record_metrics");
    Py_DECREF(module);
    if (record == nullptr) return -1;
  }
  PyObject* result = PyObject_CallOneArg(record, metrics);
  Py_XDECREF(result);
  return result != nullptr ? 0 : -1;
}

}  // namespace bragg
