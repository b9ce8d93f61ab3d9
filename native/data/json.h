// Just enough JSON to write a capture's META and to read the options of a session.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bragg {

// A text in quotes. Bytes that are not UTF-8, as paths may have, become U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);

// An array: `json_of` returns the JSON of one of the rows.
template <class Rows, class JsonOf>
[[nodiscard]] std::string json_array(const Rows& rows, JsonOf&& json_of) {
  std::string json = "[";
  for (const auto& row : rows) {
    if (json.size() > 1) json += ',';
    json += json_of(row);
  }
  return json + ']';
}

// A member of an object: a text without its quotes, or another value as it is written.
struct JsonMember {
  std::string name;
  std::string value;
  bool is_text = false;
};

// The members of an object of plain values, in order; empty: the text is not such an object.
[[nodiscard]] std::optional<std::vector<JsonMember>> json_members(std::string_view json);

class JsonObject {
 public:
  JsonObject& put(std::string_view key, std::integral auto value) { return raw(key, std::to_string(value)); }
  JsonObject& put(std::string_view key, std::string_view value) { return raw(key, json_string(value)); }
  JsonObject& raw(std::string_view key, std::string_view json) {
    members_.emplace_back(key, json);
    return *this;
  }
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& members() const { return members_; }
  [[nodiscard]] std::string text() const {
    std::string json = "{";
    for (const auto& [key, value] : members_) {
      if (json.size() > 1) json += ',';
      json += json_string(key);
      json += ':';
      json += value;
    }
    json += '}';
    return json;
  }

 private:
  std::vector<std::pair<std::string, std::string>> members_;
};

}  // namespace bragg
