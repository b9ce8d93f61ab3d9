#include "intake/xla_names.h"

#include <algorithm>
#include <cctype>

namespace bragg::xla {
namespace {

bool is_key(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// Where the value that begins at `from` ends: a comma counts only if a key and `=` follow, as names may have commas.
size_t end_of_value(std::string_view body, size_t from) {
  for (size_t comma = body.find(',', from); comma != body.npos; comma = body.find(',', comma + 1)) {
    const size_t equals = body.find('=', comma);
    if (equals == body.npos) break;
    if (is_key(body.substr(comma + 1, equals - comma - 1))) return comma;
  }
  return body.size();
}

// The value of a key between the two marks; empty: there is none.
std::string_view value_of(std::string_view body, std::string_view key) {
  for (size_t at = 0; at < body.size();) {
    const size_t equals = body.find('=', at);
    if (equals == body.npos) return {};
    const size_t end = end_of_value(body, equals + 1);
    if (body.substr(at, equals - at) == key) return body.substr(equals + 1, end - equals - 1);
    at = end + 1;
  }
  return {};
}

// Takes `key=value` off the beginning, up to the last of the `next` keys: names of programs may hold anything.
std::string_view take_name(std::string_view& body, std::string_view key, std::string_view next) {
  const size_t end = body.rfind(next);
  if (end == body.npos || body.substr(0, key.size()) != key) return {};
  const std::string_view name = body.substr(key.size(), end - key.size());
  body.remove_prefix(end + 1);
  return name;
}

Range module_range(std::string_view body) {
  const std::string_view prefix = take_name(body, "prefix=", ",hlo_module=");
  const std::string_view module = value_of(body, "hlo_module");
  if (module.empty()) return {};
  Range range;
  if (!prefix.empty()) range.path.push_back({FrameKind::Operator, "prefix=" + std::string(prefix), "hlo_prefix"});
  range.path.push_back({FrameKind::Operator, std::string(module), "hlo_module"});
  return range;
}

Range thunk_range(std::string_view body) {
  Range range;
  const auto add = [&range](std::string_view name, std::string_view role) {
    if (!name.empty()) range.path.push_back({FrameKind::Operator, std::string(name), role});
  };
  add(take_name(body, "name=", ",hlo_op="), "hlo_op_name");
  add(value_of(body, "hlo_op"), "hlo_op");
  if (const std::string_view file = value_of(body, "source_file"); !file.empty())
    range.source = std::string(file) + ":" + std::string(value_of(body, "source_line"));
  return range;
}

// Passes that run candidates on the GPU; their names changed with XLA's versions.
bool runs_candidates(std::string_view pass) {
  return pass == "config-assigner" || pass.find("autotun") != pass.npos || pass.find("algorithm-picker") != pass.npos;
}

Range compile_range(std::string_view step, std::string_view body) {
  const std::string_view module = value_of(body, "module");
  if (module.empty()) return {};
  if (step == "XlaCompile") return {.path = {{FrameKind::Scope, "[compile] " + std::string(module), {}}}};
  if (step == "XlaPass" && runs_candidates(value_of(body, "name")))
    return {.path = {{FrameKind::Scope, "autotune", {}}}};
  if (step == "XlaCompileBackend") return {.path = {{FrameKind::Scope, "generate code", {}}}};
  return {.is_detail = true};
}

// What ranges carry besides their name: instructions, what they call, and lines, each text some kilobytes.
bool is_payload(std::string_view text) { return text.starts_with('\n') || text.find(" = ") != text.npos; }

}  // namespace

Range parse_range(std::string_view text) {
  const size_t mark = text.find(":#");
  if (mark == text.npos || mark + 2 >= text.size() || !text.ends_with('#')) return {.is_detail = is_payload(text)};
  const std::string_view what = text.substr(0, mark);
  const std::string_view body = text.substr(mark + 2, text.size() - mark - 3);
  if (what == "XlaModule") return module_range(body);
  if (what == "Thunk") return thunk_range(body);
  return what.starts_with("Xla") ? compile_range(what, body) : Range{};
}

}  // namespace bragg::xla
