// Reading bytes that may be damaged: whatever lies outside them throws.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace bragg {

// What is wrong with bytes that were read.
class BadBytes : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Bytes = std::span<const uint8_t>;

inline uint32_t to_u32(uint64_t value) {
  if (value > std::numeric_limits<uint32_t>::max()) throw BadBytes("a number in it is too large");
  return static_cast<uint32_t>(value);
}

// Little endian. Every member throws BadBytes instead of reading past the end.
class ByteCursor {
 public:
  explicit ByteCursor(Bytes bytes, size_t at = 0) : bytes_(bytes), at_(at) {
    if (at > bytes.size()) throw BadBytes("an offset leads out of the file");
  }

  template <class Number>
    requires std::is_trivially_copyable_v<Number>
  Number read() {
    Number number;
    std::memcpy(&number, take(sizeof number).data(), sizeof number);
    return number;
  }
  uint64_t unsigned_leb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = read<uint8_t>();
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }
  int64_t signed_leb() {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const auto byte = read<uint8_t>();
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if ((byte & 0x40) != 0 && shift < 64) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
  }
  std::string_view string() {
    const Bytes rest = bytes_.subspan(at_);
    const void* end = rest.empty() ? nullptr : std::memchr(rest.data(), 0, rest.size());
    if (end == nullptr) throw BadBytes("a string has no end");
    const auto size = static_cast<size_t>(static_cast<const uint8_t*>(end) - rest.data());
    at_ += size + 1;
    return {reinterpret_cast<const char*>(rest.data()), size};
  }
  Bytes take(uint64_t size) {
    if (size > bytes_.size() - at_) throw BadBytes("it ends too early");
    const Bytes taken = bytes_.subspan(at_, size);
    at_ += size;
    return taken;
  }

  [[nodiscard]] size_t at() const { return at_; }
  [[nodiscard]] size_t left() const { return bytes_.size() - at_; }

 private:
  Bytes bytes_;
  size_t at_;
};

}  // namespace bragg
