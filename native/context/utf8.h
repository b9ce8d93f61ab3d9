// Characters as UTF-8.
#pragma once

#include <cstdint>
#include <string>

namespace bragg {

// Appends one character of Unicode; what is not one becomes U+FFFD.
inline void append_utf8(std::string& out, uint32_t character) {
  const auto put = [&out](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  const auto tail = [&](uint32_t shift) { put(0x80 | ((character >> shift) & 0x3F)); };
  if ((character >= 0xD800 && character <= 0xDFFF) || character > 0x10FFFF) character = 0xFFFD;
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xC0 | (character >> 6)), tail(0);
  } else if (character < 0x10000) {
    put(0xE0 | (character >> 12)), tail(6), tail(0);
  } else {
    put(0xF0 | (character >> 18)), tail(12), tail(6), tail(0);
  }
}

}  // namespace bragg
