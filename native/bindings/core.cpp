// `_core`: the recorder for Python. Thin: what it does is in libbragg_core.so.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <pthread.h>

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "api/bragg_core.h"
#include "bindings/code_watcher.h"
#include "bindings/followed_calls.h"
#include "bindings/host_sampler.h"
#include "bindings/launch_hook.h"
#include "bindings/metrics_binding.h"
#include "bindings/python_frames_binding.h"
#include "bindings/scope_type.h"
#include "bindings/session_binding.h"
#include "bindings/symbols_binding.h"
#include "bindings/tasks.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace bragg {

NB_MODULE(_core, module) {
  // What keeps a program's globals alive at its end keeps its sessions too, and Triton 3.9 does: no news for its user.
  nb::set_leak_warnings(false);
  if (!add_scope_type(module.ptr()) || !add_launch_hook_type(module.ptr())) throw nb::python_error();
  bind_python_frames(module);
  bind_metrics(module);
  bind_symbols(module);
  bind_followed_calls(module);
  bind_session(module);
  watch_code_objects();
  tasks.learn();
  pthread_atfork(nullptr, nullptr, forget_host_sampler_after_fork);

  module.def("now_ns", &bragg_now_ns);
  module.def("flush_device_records", [] {
    {
      const nb::gil_scoped_release no_gil;
      bragg_flush_device_records();
    }
    if (PyErr_Occurred() != nullptr) throw nb::python_error();  // of a signal's handler, meanwhile
  });
  module.def("reclaim_device_records", &bragg_reclaim_device_records, nb::call_guard<nb::gil_scoped_release>());
  module.def("hurry", &bragg_hurry);
  module.def("note_own_thread", &bragg_note_own_thread);
  module.def("finish_on_signal", [](int number) { return bragg_finish_on_signal(number) != 0; }, "number"_a);
  module.def("collective_progress", [] {
    using Row = std::tuple<std::string, std::string, uint64_t, int64_t>;
    std::vector<Row> rows;
    bragg_collective_progress(
        [](void* context, const char* group, const char* last, uint64_t count, int64_t at_ns) {
          static_cast<std::vector<Row>*>(context)->emplace_back(group, last, count, at_ns);
        },
        &rows);
    return rows;
  });
  module.def("context_depth", &bragg_context_depth);
  module.def("recording", [] { return bragg_is_recording() != 0; });
  module.def("library_path", &bragg_library_path);
  module.def("_can_unwind", [] { return bragg_can_unwind() != 0; });
  module.def("record_nvtx", [](bool wanted) { bragg_record_nvtx(wanted); }, "wanted"_a);
  module.def(
      "describe_scope",
      [](const std::string& name, const std::string& key, const std::string& value) {
        bragg_describe_frame(bragg_scope_frame(name.data(), static_cast<uint32_t>(name.size())), key.c_str(),
                             value.c_str());
      },
      "name"_a, "key"_a, "value"_a);
  module.def(
      "describe_operator",
      [](const std::string& name, const std::string& key, const std::string& value) {
        bragg_describe_frame(bragg_operator_frame(name.data(), static_cast<uint32_t>(name.size())), key.c_str(),
                             value.c_str());
      },
      "name"_a, "key"_a, "value"_a);
  module.def(
      "follow_autograd",
      [](const std::string& library, bool counts_references_itself, uint32_t number_offset, uint32_t thread_offset,
         uint64_t thread_number) {
        return bragg_follow_autograd(library.c_str(), counts_references_itself, number_offset, thread_offset,
                                     thread_number) != 0;
      },
      "library"_a, nb::kw_only(), "counts_references_itself"_a, "number_offset"_a, "thread_offset"_a,
      "thread_number"_a);
  module.def(
      "begin_operator_trial",
      [](const std::string& library) {
        char reason[512] = "";
        bragg_begin_operator_trial(library.c_str(), reason, sizeof reason);
        return std::string(reason);
      },
      "library"_a);
  module.def(
      "end_operator_trial",
      [](const std::string& operator_name) {
        char reason[512] = "";
        bragg_end_operator_trial(operator_name.c_str(), reason, sizeof reason);
        return std::string(reason);
      },
      "operator_name"_a);
  using Addresses = std::array<uint64_t, 3>;
  module.def(
      "begin_input_trial",
      [](const Addresses& first, const Addresses& second) { bragg_begin_input_trial(first.data(), second.data()); },
      "first"_a, "second"_a);
  module.def(
      "end_input_trial", [](const Addresses& output) { return bragg_end_input_trial(output.data()) != 0; }, "output"_a);
  module.def("set_operator_cost", &bragg_set_operator_cost, "ns"_a);
  module.def("observe_operators", [](bool shapes) { return bragg_observe_operators(shapes) != 0; }, "shapes"_a);
  module.def("stop_observing_operators", &bragg_stop_observing_operators);
  module.def("read_xla", [](bool wanted) { bragg_read_xla(wanted); }, "wanted"_a);
  module.def("lend_context", &bragg_lend_context);
  module.def("return_context", &bragg_return_context);
}

}  // namespace bragg
