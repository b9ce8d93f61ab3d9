// Just enough JSON to write a capture's META.
#pragma once

#include <concepts>
#include <cstdio>
#include <string>
#include <string_view>

namespace bragg {

[[nodiscard]] inline std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

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
