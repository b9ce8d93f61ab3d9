#include "api/session_options.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <span>
#include <vector>

#include "data/json.h"

namespace bragg {
namespace {

constexpr std::string_view kBackends[] = {"auto", "cuda", "cpu"};
constexpr std::string_view kContexts[] = {"shadow", "python", "native"};
constexpr std::string_view kData[] = {"tree", "trace"};
constexpr std::string_view kGraphs[] = {"node", "graph"};
constexpr std::string_view kApiLevels[] = {"off", "sync", "all"};
constexpr double kTelemetryOfAll = BRAGG_TELEMETRY_THRIFTY;  // of sessions that do not choose
constexpr std::string_view kSampling[] = {"off", "continuous", "windows", "serialized"};

// The table of options: names and choices are those of `RecordConfig` in Python.
class Table {
 public:
  explicit Table(bragg_session_options& options) : options_(options) {}

  // False: `problem` says why.
  bool take(const JsonMember& member, std::string& problem) {
    int context = -1;
    const bool is_known =
        choose(member, "backend", kBackends, options_.backend) || choose(member, "context", kContexts, context) ||
        choose(member, "data", kData, options_.trace) || choose(member, "graphs", kGraphs, options_.graph_level) ||
        choose(member, "gpu_api", kApiLevels, options_.gpu_api) ||
        choose(member, "sampling", kSampling, options_.sampling) ||
        number(member, "flush_interval_ms", options_.flush_interval_ms) ||
        number(member, "tree_limit_mb", options_.tree_limit_mb) ||
        number(member, "rotate_interval_ms", options_.rotate_interval_ms) ||
        number(member, "sample_interval_us", options_.sample_interval_us) ||
        number(member, "sample_period", options_.sample_period) ||
        number(member, "sample_budget", options_.sample_budget) || text(member, "counters", options_.counters) ||
        number(member, "counter_interval_us", options_.counter_interval_us) ||
        text(member, "exact_kernels", options_.exact_kernels) ||
        text(member, "exact_metrics", options_.exact_metrics) ||
        number(member, "exact_launches", options_.exact_launches) || telemetry(member) ||
        flag(member, "memory", options_.memory) || flag(member, "nccl", options_.nccl) ||
        flag(member, "no_idle", options_.no_idle);
    if (context >= 0) {
      options_.python_context = context >= 1;
      options_.native_context = context >= 2;
    }
    problem = problem_;
    return !is_known || problem_.empty();
  }

 private:
  // True: it is this option.
  bool choose(const JsonMember& member, std::string_view name, std::span<const std::string_view> choices, int& chosen) {
    if (member.name != name) return false;
    const auto found = std::find(choices.begin(), choices.end(), member.value);
    if (!member.is_text || found == choices.end()) {
      problem_ = "unknown " + member.name + ": " + member.value;
    } else {
      chosen = static_cast<int>(found - choices.begin());
    }
    return true;
  }
  template <size_t size>
  bool text(const JsonMember& member, std::string_view name, char (&value)[size]) {
    if (member.name != name) return false;
    if (!member.is_text || member.value.size() >= size) {
      problem_ =
          "option " + member.name + " of a session must be a text of less than " + std::to_string(size) + " bytes";
    } else {
      value[member.value.copy(value, size - 1)] = 0;
    }
    return true;
  }
  bool flag(const JsonMember& member, std::string_view name, int& value) {
    if (member.name != name) return false;
    if (member.is_text || (member.value != "true" && member.value != "false"))
      problem_ = "option " + member.name + " of a session is neither true nor false: " + member.value;
    else
      value = member.value == "true" ? 1 : 0;
    return true;
  }
  bool telemetry(const JsonMember& member) {
    if (member.name == "telemetry_hz") options_.telemetry_hz = kTelemetryOfAll;
    return number(member, "telemetry_hz", options_.telemetry_hz);
  }
  template <class Number>
  bool number(const JsonMember& member, std::string_view name, Number& value) {
    if (member.name != name) return false;
    if (member.value == "null" && !member.is_text) return true;
    const char* end = member.value.data() + member.value.size();
    const auto [stop, error] = std::from_chars(member.value.data(), end, value);
    if (member.is_text || error != std::errc{} || stop != end) {
      problem_ = "option " + member.name + " of a session must be a number in range: " + member.value;
    }
    return true;
  }

  bragg_session_options& options_;
  std::string problem_;
};

}  // namespace

std::string read_session_options(std::string_view json, bragg_session_options& options) {
  const std::optional<std::vector<JsonMember>> members = json_members(json);
  if (!members) return "the options of a session are not a JSON object of plain values";
  for (const JsonMember& member : *members) {
    std::string problem;
    if (!Table(options).take(member, problem)) return problem;
  }
  return {};
}

}  // namespace bragg
