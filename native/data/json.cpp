#include "data/json.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>

namespace bragg {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Bytes of the character that a text begins with; 0: it begins with none (The Unicode Standard, table 3-7).
size_t character_size(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const bool is_overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool is_beyond = (lead == 0xED && byte(1) > 0x9F) || (lead == 0xF4 && byte(1) > 0x8F);
  return is_overlong || is_beyond ? 0 : size;
}

std::string escaped(char control) {
  char text[8];
  std::snprintf(text, sizeof text, "\\u%04x", static_cast<unsigned>(control));
  return text;
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const char first = text[0];
    const size_t size = character_size(text);
    if (first == '"' || first == '\\') out += '\\';
    if (size == 1 && first < 0x20) {
      out += escaped(first);
    } else {
      out += size != 0 ? text.substr(0, size) : kReplacement;
    }
    text.remove_prefix(size != 0 ? size : 1);
  }
  return out += '"';
}

namespace {

// Reads from the front of a text.
class JsonFront {
 public:
  explicit JsonFront(std::string_view text) : left_(text) {}

  bool take(char wanted) {
    skip_spaces();
    if (left_.empty() || left_[0] != wanted) return false;
    left_.remove_prefix(1);
    return true;
  }
  bool text(std::string& out) {
    if (!take('"')) return false;
    for (; !left_.empty() && left_[0] != '"'; left_.remove_prefix(1)) {
      if (left_[0] == '\\') left_.remove_prefix(1);  // of an escape the letter is kept: no choice is spelled with one
      if (left_.empty()) return false;
      out += left_[0];
    }
    return take('"');
  }
  // A number, or a word such as `true`.
  bool word(std::string& out) {
    skip_spaces();
    const size_t size = std::min(left_.find_first_of(",}]{[\" \n\t\r"), left_.size());
    out = left_.substr(0, size);
    left_.remove_prefix(size);
    return size != 0;
  }
  [[nodiscard]] bool is_at_end() {
    skip_spaces();
    return left_.empty();
  }

 private:
  void skip_spaces() { left_.remove_prefix(std::min(left_.find_first_not_of(" \n\t\r"), left_.size())); }

  std::string_view left_;
};

}  // namespace

std::optional<std::vector<JsonMember>> json_members(std::string_view json) {
  JsonFront front(json);
  std::vector<JsonMember> members;
  if (!front.take('{')) return std::nullopt;
  if (front.take('}')) return front.is_at_end() ? std::optional(members) : std::nullopt;
  do {
    JsonMember& member = members.emplace_back();
    if (!front.text(member.name) || !front.take(':')) return std::nullopt;
    member.is_text = front.text(member.value);
    if (!member.is_text && !front.word(member.value)) return std::nullopt;
  } while (front.take(','));
  return front.take('}') && front.is_at_end() ? std::optional(members) : std::nullopt;
}

}  // namespace bragg
