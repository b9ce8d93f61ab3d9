// `_core`: sessions and contexts for Python. Thin: what it does is in libbragg_core.so.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <pthread.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "api/bragg_core.h"
#include "bindings/code_watcher.h"
#include "bindings/followed_calls.h"
#include "bindings/host_sampler.h"
#include "bindings/launch_hook.h"
#include "bindings/metrics_binding.h"
#include "bindings/python_frames_binding.h"
#include "bindings/scope_type.h"
#include "bindings/symbols_binding.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace bragg {
namespace {

int choice(const std::string& value, std::initializer_list<const char*> choices, const char* what) {
  int index = 0;
  for (const char* choice : choices) {
    if (value == choice) return index;
    ++index;
  }
  throw nb::value_error((std::string("unknown ") + what + ": " + value).c_str());
}

std::string join(const std::vector<std::string>& parts) {
  std::string joined;
  for (const std::string& part : parts) joined += (joined.empty() ? "" : ":") + part;
  return joined;
}

[[noreturn]] void raise_os_error(int error, const std::string& path) {
  errno = error;
  PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
  throw nb::python_error();
}

nb::object parse_json(const std::string& json) { return nb::module_::import_("json").attr("loads")(json); }

// Calls write(buffer, size), which returns the bytes it needs, until the buffer is large enough. Without the GIL.
template <class Write>
std::string read_text(Write&& write) {
  const nb::gil_scoped_release no_gil;
  std::string text(4096, '\0');
  for (uint32_t needed = write(text.data(), static_cast<uint32_t>(text.size())); needed > text.size();
       needed = write(text.data(), static_cast<uint32_t>(text.size())))
    text.resize(needed + 1024);
  return text.c_str();
}

class Session {
 public:
  Session(const std::string& part_path, const std::string& backend, const std::string& context, const std::string& data,
          const std::string& graphs, const std::string& gpu_api, uint32_t flush_interval_ms,
          uint32_t rotate_interval_ms, uint32_t sample_interval_us, const std::string& sampling, uint32_t sample_period,
          double sample_budget, const std::string& meta, const std::vector<std::string>& cupti_candidates)
      : samples_(sample_interval_us > 0 && context != "shadow") {
    const std::string candidates = join(cupti_candidates);
    bragg_session_options options{};
    options.part_path = part_path.c_str();
    options.meta_json = meta.c_str();
    options.cupti_candidates = candidates.c_str();
    options.backend = choice(backend, {"auto", "cuda", "cpu"}, "backend");
    const int depth = choice(context, {"shadow", "python", "native"}, "context");
    options.python_context = depth >= 1;
    options.native_context = depth >= 2;
    options.trace = choice(data, {"tree", "trace"}, "data");
    options.sampling = choice(sampling, {"off", "continuous", "windows", "serialized"}, "sampling mode");
    options.sample_period = sample_period;
    options.sample_budget = sample_budget;
    options.graph_level = choice(graphs, {"node", "graph"}, "level of graphs");
    options.gpu_api = choice(gpu_api, {"off", "sync", "all"}, "level of GPU API calls");
    options.flush_interval_ms = flush_interval_ms;
    options.rotate_interval_ms = rotate_interval_ms;
    int os_error = 0;
    char reason[512] = "";
    {
      const nb::gil_scoped_release no_gil;
      id_ = bragg_session_start(&options, &os_error, reason, sizeof reason);
    }
    if (id_ < 0 && os_error != 0) raise_os_error(os_error, part_path);
    if (id_ < 0) throw std::runtime_error(reason);
    active_ = true;
    if (samples_) start_host_sampler(sample_interval_us);
  }

  void activate() {
    const nb::gil_scoped_release no_gil;
    bragg_session_activate(open_session());
    active_ = true;
  }
  void deactivate(bool flush) {
    const nb::gil_scoped_release no_gil;
    bragg_session_deactivate(open_session(), flush);
    active_ = false;
  }
  void flush() {
    const nb::gil_scoped_release no_gil;
    bragg_session_flush(open_session());
  }
  void advance(const std::string& part_path, const std::string& meta, const std::string& end_meta) {
    int os_error = 0;
    char reason[512] = "";
    int advanced = -1;
    {
      const nb::gil_scoped_release no_gil;
      advanced = bragg_session_advance(open_session(), part_path.c_str(), meta.c_str(), end_meta.c_str(), &os_error,
                                       reason, sizeof reason);
    }
    if (advanced < 0 && os_error != 0) raise_os_error(os_error, part_path);
    if (advanced < 0) throw std::runtime_error(reason);
  }
  void stop(const std::string& meta) {
    const int session = open_session();
    if (samples_) stop_host_sampler();
    deactivate(true);
    last_statistics_ = statistics_json();
    id_ = -1;
    const nb::gil_scoped_release no_gil;
    bragg_session_stop(session, meta.c_str());
  }
  nb::object statistics() { return parse_json(id_ >= 0 ? statistics_json() : last_statistics_); }

  [[nodiscard]] int id() const { return id_; }
  [[nodiscard]] bool active() const { return active_; }

 private:
  [[nodiscard]] int open_session() const {
    if (id_ < 0) throw std::runtime_error("this session was stopped");
    return id_;
  }
  [[nodiscard]] std::string statistics_json() const {
    return read_text([this](char* json, uint32_t size) { return bragg_session_statistics(id_, json, size); });
  }

  int id_ = -1;
  bool active_ = false;
  bool samples_ = false;
  std::string last_statistics_ = "{}";
};

}  // namespace

NB_MODULE(_core, module) {
  // What keeps a program's globals alive at its end keeps its sessions too, and Triton 3.9 does: no news for its user.
  nb::set_leak_warnings(false);
  if (!add_scope_type(module.ptr()) || !add_launch_hook_type(module.ptr())) throw nb::python_error();
  bind_python_frames(module);
  bind_metrics(module);
  bind_symbols(module);
  bind_followed_calls(module);
  watch_code_objects();
  pthread_atfork(nullptr, nullptr, forget_host_sampler_after_fork);

  nb::class_<Session>(module, "Session")
      .def(nb::init<const std::string&, const std::string&, const std::string&, const std::string&, const std::string&,
                    const std::string&, uint32_t, uint32_t, uint32_t, const std::string&, uint32_t, double,
                    const std::string&, const std::vector<std::string>&>(),
           "part_path"_a, nb::kw_only(), "backend"_a, "context"_a, "data"_a, "graphs"_a = "node", "gpu_api"_a = "off",
           "flush_interval_ms"_a = 1000, "rotate_interval_ms"_a = 0, "sample_interval_us"_a = 0, "sampling"_a = "off",
           "sample_period"_a = 0, "sample_budget"_a = 0.03, "meta"_a = "{}",
           "cupti_candidates"_a = std::vector<std::string>{})
      .def("activate", &Session::activate)
      .def("deactivate", &Session::deactivate, "flush"_a = true)
      .def("flush", &Session::flush)
      .def("advance", &Session::advance, "part_path"_a, nb::kw_only(), "meta"_a, "end_meta"_a)
      .def("stop", &Session::stop, "meta"_a = "{}")
      .def("statistics", &Session::statistics)
      .def_prop_ro("id", &Session::id)
      .def_prop_ro("active", &Session::active);

  module.def(
      "probe_cuda",
      [](const std::vector<std::string>& cupti_candidates) {
        const std::string candidates = join(cupti_candidates);
        return parse_json(
            read_text([&](char* json, uint32_t size) { return bragg_probe_cuda(candidates.c_str(), json, size); }));
      },
      "cupti_candidates"_a = std::vector<std::string>{});
  module.def("flush_device_records", &bragg_flush_device_records, nb::call_guard<nb::gil_scoped_release>());
  module.def("reclaim_device_records", &bragg_reclaim_device_records, nb::call_guard<nb::gil_scoped_release>());
  module.def("finish_on_signal", [](int number) { return bragg_finish_on_signal(number) != 0; }, "number"_a);
  module.def("context_depth", &bragg_context_depth);
  module.def("recording", [] { return bragg_is_recording() != 0; });
  module.def("library_path", &bragg_library_path);
  module.def("_can_unwind", [] { return bragg_can_unwind() != 0; });
  module.def("record_nvtx", [](bool wanted) { bragg_record_nvtx(wanted); }, "wanted"_a);
  module.def(
      "describe_scope",
      [](const std::string& name, const std::string& key, const std::string& value) {
        bragg_describe_scope(name.c_str(), key.c_str(), value.c_str());
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
  module.def("observe_operators", [](bool shapes) { return bragg_observe_operators(shapes) != 0; }, "shapes"_a);
  module.def("stop_observing_operators", &bragg_stop_observing_operators);
  module.def("read_xla", [](bool wanted) { bragg_read_xla(wanted); }, "wanted"_a);
  module.def("lend_context", &bragg_lend_context);
  module.def("return_context", &bragg_return_context);
}

}  // namespace bragg
