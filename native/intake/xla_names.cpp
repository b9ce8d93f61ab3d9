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
    if (equals != body.npos && is_key(body.substr(comma + 1, equals - comma - 1))) return comma;
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

// Parts between slashes that stand in no brackets.
std::vector<std::string_view> segments_of(std::string_view name) {
  std::vector<std::string_view> segments;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= name.size(); ++i) {
    if (i < name.size() && name[i] == '(') ++depth;
    if (i < name.size() && name[i] == ')' && depth > 0) --depth;
    if (i < name.size() && (name[i] != '/' || depth > 0)) continue;
    if (i > begin) segments.push_back(name.substr(begin, i - begin));
    begin = i + 1;
  }
  return segments;
}

bool is_call_of(std::string_view text, std::string_view function) {
  return text.size() > function.size() + 1 && text.starts_with(function) && text[function.size()] == '(' &&
         text.ends_with(')');
}

class Thunk {
 public:
  explicit Thunk(std::string_view name) {
    std::vector<std::string_view> segments = segments_of(name);
    if (segments.size() > 1) {
      primitive_ = segments.back();
      segments.pop_back();
    }
    for (const std::string_view segment : segments) add(segment);
  }

  std::vector<PathFrame> path(std::string_view operation) && {
    std::vector<PathFrame> path = std::move(scopes_);
    if (is_backward_) path.push_back({FrameKind::State, "[backward]"});
    if (!primitive_.empty()) path.push_back({FrameKind::Operator, std::string(primitive_)});
    if (!operation.empty()) path.push_back({FrameKind::Operator, std::string(operation)});
    return path;
  }

 private:
  // Transformations say how a scope is computed, not where in the program it is.
  void add(std::string_view segment) {
    for (const std::string_view transformation : {"transpose", "jvp", "vmap", "remat", "checkpoint"}) {
      if (!is_call_of(segment, transformation)) continue;
      is_backward_ = is_backward_ || transformation == "transpose";
      return add(segment.substr(transformation.size() + 1, segment.size() - transformation.size() - 2));
    }
    for (const std::string_view compiled : {"jit", "pjit"})
      if (is_call_of(segment, compiled)) {
        const std::string_view function = segment.substr(compiled.size() + 1, segment.size() - compiled.size() - 2);
        if (module_.empty()) module_ = function;
        if (function == module_) return;  // the module of the thunk, which is a range around it
        segment = function;
        break;
      }
    for (const std::string_view part : segments_of(segment)) scopes_.push_back({FrameKind::Scope, std::string(part)});
  }

  std::vector<PathFrame> scopes_;
  std::string_view primitive_, module_;
  bool is_backward_ = false;
};

}  // namespace

Range parse_range(std::string_view text) {
  constexpr std::string_view kModule = "XlaModule:#", kThunk = "Thunk:#";
  const bool is_module = text.starts_with(kModule);
  if ((!is_module && !text.starts_with(kThunk)) || !text.ends_with('#')) return {};
  std::string_view body = text.substr(is_module ? kModule.size() : kThunk.size());
  if (body.empty()) return {};
  body.remove_suffix(1);
  Range range;
  if (is_module) {
    if (const std::string_view module = value_of(body, "hlo_module"); !module.empty())
      range.path.push_back({FrameKind::Operator, std::string(module)});
    return range;
  }
  range.path = Thunk(value_of(body, "name")).path(value_of(body, "hlo_op"));
  if (const std::string_view file = value_of(body, "source_file"); !file.empty())
    range.source = std::string(file) + ":" + std::string(value_of(body, "source_line"));
  return range;
}

}  // namespace bragg::xla
