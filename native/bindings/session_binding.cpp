#include "bindings/session_binding.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "api/bragg_core.h"
#include "bindings/host_sampler.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace bragg {
namespace {

[[noreturn]] void raise_os_error(int error, const std::string& path) {
  errno = error;
  PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
  throw nb::python_error();
}

// As the core takes lists of paths.
std::string join_paths(const std::vector<std::string>& paths) {
  std::string joined;
  for (const std::string& path : paths) joined += (joined.empty() ? "" : ":") + path;
  return joined;
}

nb::object parse_json(const std::string& json) { return nb::module_::import_("json").attr("loads")(json); }

// Calls write(buffer, size), which returns the bytes it needs, until the buffer is large enough. Without the GIL.
template <class Write>
std::string read_text(Write&& write, size_t usual_bytes = 4096) {
  const nb::gil_scoped_release no_gil;
  std::string text(usual_bytes, '\0');
  for (uint32_t needed = write(text.data(), static_cast<uint32_t>(text.size())); needed > text.size();
       needed = write(text.data(), static_cast<uint32_t>(text.size())))
    text.resize(needed + 1024);
  return text.c_str();
}

constexpr size_t kProbeBytes = 1 << 20;  // more than probes write: each takes seconds

// While the core waits for the GPU the program's handlers of signals run all the same, and Ctrl-C ends the wait.
int look_for_interruption() {
  const nb::gil_scoped_acquire gil;
  return PyErr_Occurred() != nullptr || PyErr_CheckSignals() != 0 ? 1 : 0;
}

// What such a handler raised.
void raise_interruption() {
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
}

class Session {
 public:
  Session(const std::string& part_path, const std::string& options_json, const std::string& meta,
          const std::vector<std::string>& cupti_candidates) {
    bragg_session_options options{};
    options.flush_interval_ms = 1000;
    int os_error = 0;
    char reason[512] = "";
    if (bragg_read_options(options_json.c_str(), &options, reason, sizeof reason) != 0) throw nb::value_error(reason);
    const std::string candidates = join_paths(cupti_candidates);
    options.part_path = part_path.c_str();
    options.meta_json = meta.c_str();
    options.cupti_candidates = candidates.c_str();
    {
      const nb::gil_scoped_release no_gil;
      id_ = bragg_session_start(&options, &os_error, reason, sizeof reason);
    }
    if (id_ < 0 && os_error != 0) raise_os_error(os_error, part_path);
    if (id_ < 0) throw std::runtime_error(reason);
    active_ = true;
    samples_ = options.sample_interval_us > 0 && options.python_context != 0;
    if (samples_) start_host_sampler(options.sample_interval_us);
  }

  void activate() {
    const nb::gil_scoped_release no_gil;
    bragg_session_activate(open_session());
    active_ = true;
  }
  void deactivate(bool flush) {
    pause(flush);
    raise_interruption();
  }
  void flush() {
    {
      const nb::gil_scoped_release no_gil;
      bragg_session_flush(open_session());
    }
    raise_interruption();
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
    raise_interruption();
    if (advanced < 0 && os_error != 0) raise_os_error(os_error, part_path);
    if (advanced < 0) throw std::runtime_error(reason);
  }
  void stop(const std::string& meta) {
    const int session = open_session();
    if (std::exchange(is_stopping_, true)) throw std::runtime_error("another thread stops this session");
    if (samples_) stop_host_sampler();
    pause(true);
    last_statistics_ = statistics_json();
    id_ = -1;
    {
      const nb::gil_scoped_release no_gil;
      bragg_session_stop(session, meta.c_str());
    }
    raise_interruption();
  }
  nb::object statistics() { return parse_json(id_ >= 0 ? statistics_json() : last_statistics_); }

  [[nodiscard]] int id() const { return id_; }
  [[nodiscard]] bool active() const { return active_; }

 private:
  [[nodiscard]] int open_session() const {
    if (id_ < 0) throw std::runtime_error("this session was stopped");
    return id_;
  }
  void pause(bool flush) {
    const nb::gil_scoped_release no_gil;
    bragg_session_deactivate(open_session(), flush);
    active_ = false;
  }
  [[nodiscard]] std::string statistics_json() const {
    return read_text([this](char* json, uint32_t size) { return bragg_session_statistics(id_, json, size); });
  }

  int id_ = -1;
  bool active_ = false;
  bool samples_ = false;
  bool is_stopping_ = false;
  std::string last_statistics_ = "{}";
};

}  // namespace

void bind_session(nb::module_& module) {
  bragg_set_interrupt_look(look_for_interruption);
  nb::class_<Session>(module, "Session")
      .def(nb::init<const std::string&, const std::string&, const std::string&, const std::vector<std::string>&>(),
           "part_path"_a, "options"_a, nb::kw_only(), "meta"_a = "{}",
           "cupti_candidates"_a = std::vector<std::string>{})
      .def("activate", &Session::activate)
      .def("deactivate", &Session::deactivate, "flush"_a = true)
      .def("flush", &Session::flush)
      .def("advance", &Session::advance, "part_path"_a, nb::kw_only(), "meta"_a, "end_meta"_a)
      .def("stop", &Session::stop, "meta"_a = "{}")
      .def("statistics", &Session::statistics)
      .def_prop_ro("id", &Session::id)
      .def_prop_ro("active", &Session::active);

  module.def("sampled_threads", &sampled_threads);
  const auto define = [&](const char* name, uint32_t (*probe)(const char*, char*, uint32_t)) {
    module.def(
        name,
        [probe](const std::vector<std::string>& cupti_candidates) {
          const std::string candidates = join_paths(cupti_candidates);
          const auto write = [&](char* json, uint32_t size) { return probe(candidates.c_str(), json, size); };
          return parse_json(read_text(write, kProbeBytes));
        },
        "cupti_candidates"_a = std::vector<std::string>{});
  };
  define("probe_cuda", bragg_probe_cuda);
  define("list_counters", bragg_list_counters);
}

}  // namespace bragg
