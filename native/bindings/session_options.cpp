#include "bindings/session_options.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace nb = nanobind;

namespace bragg {
namespace {

using Choices = std::initializer_list<std::string_view>;

// Takes options out of a call's keyword arguments, each once.
class Keywords {
 public:
  explicit Keywords(const nb::kwargs& given) : left_(nb::steal<nb::dict>(PyDict_Copy(given.ptr()))) {
    if (!left_.is_valid()) throw nb::python_error();
  }

  // False: it is not given, and `value` stays what it is.
  template <class Value>
  bool take(const char* name, Value& value) {
    if (!left_.contains(name)) return false;
    if (!nb::try_cast<Value>(left_[name], value)) refuse("has another type", name);
    nb::del(left_[name]);
    return true;
  }
  bool choose(const char* name, Choices choices, int& chosen) {
    std::string text;
    if (!take(name, text)) return false;
    const auto* found = std::find(choices.begin(), choices.end(), text);
    if (found == choices.end()) throw nb::value_error((std::string("unknown ") + name + ": " + text).c_str());
    chosen = static_cast<int>(found - choices.begin());
    return true;
  }
  void require(const char* name, Choices choices, int& chosen) {
    if (!choose(name, choices, chosen)) refuse("is needed", name);
  }
  void finish() const {
    for (const auto [name, value] : left_) refuse("is not known", nb::cast<std::string>(name));
  }

 private:
  [[noreturn]] static void refuse(const char* why, const std::string& name) {
    throw nb::type_error(("option " + name + " of a session " + why).c_str());
  }

  nb::dict left_;
};

}  // namespace

SessionOptions SessionOptions::read(const std::string& part_path, const nb::kwargs& given) {
  SessionOptions options;
  std::vector<std::string> cupti_candidates;
  Keywords keywords(given);
  options.part_path = part_path;
  keywords.require("backend", {"auto", "cuda", "cpu"}, options.backend);
  keywords.require("context", {"shadow", "python", "native"}, options.context);
  keywords.require("data", {"tree", "trace"}, options.data);
  keywords.choose("graphs", {"node", "graph"}, options.graphs);
  keywords.choose("gpu_api", {"off", "sync", "all"}, options.gpu_api);
  keywords.take("flush_interval_ms", options.flush_interval_ms);
  keywords.take("tree_limit_mb", options.tree_limit_mb);
  keywords.take("rotate_interval_ms", options.rotate_interval_ms);
  keywords.take("sample_interval_us", options.sample_interval_us);
  keywords.choose("sampling", {"off", "continuous", "windows", "serialized"}, options.sampling);
  keywords.take("sample_period", options.sample_period);
  keywords.take("sample_budget", options.sample_budget);
  keywords.take("meta", options.meta);
  keywords.take("cupti_candidates", cupti_candidates);
  keywords.finish();
  options.cupti_candidates = join_paths(cupti_candidates);
  return options;
}

bragg_session_options SessionOptions::native() const {
  bragg_session_options options{};
  options.part_path = part_path.c_str();
  options.meta_json = meta.c_str();
  options.cupti_candidates = cupti_candidates.c_str();
  options.backend = backend;
  options.python_context = context >= 1;
  options.native_context = context >= 2;
  options.trace = data;
  options.graph_level = graphs;
  options.gpu_api = gpu_api;
  options.flush_interval_ms = flush_interval_ms;
  options.tree_limit_mb = tree_limit_mb;
  options.rotate_interval_ms = rotate_interval_ms;
  options.sampling = sampling;
  options.sample_period = sample_period;
  options.sample_budget = sample_budget;
  return options;
}

std::string join_paths(const std::vector<std::string>& paths) {
  std::string joined;
  for (const std::string& path : paths) joined += (joined.empty() ? "" : ":") + path;
  return joined;
}

}  // namespace bragg
