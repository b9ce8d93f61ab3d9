// Just enough JSON to write a capture's META.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace bragg {

// A text in quotes. Bytes that are no UTF-8, as paths may have, become U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);

class JsonObject {
 public:
  JsonObject& put(std::string_view key, std::integral auto value) { return raw(key, std::to_string(value)); }
  JsonObject& put(std::string_view key, std::string_view value) { return raw(key, json_string(value)); }
  JsonObject& raw(std::string_view key, std::string_view json) {
    if (!body_.empty()) body_ += ',';
    body_ += json_string(key);
    body_ += ':';
    body_ += json;
    return *this;
  }
  [[nodiscard]] std::string text() const {
    std::string json = "{";
    json += body_;
    json += '}';
    return json;
  }

 private:
  std::string body_;
};

}  // namespace bragg
