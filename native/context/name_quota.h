// How many names a program may give.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace bragg {

// Names that are made up as the program runs, as by scope(f"request {i}"), would fill the memory of one that runs for
// days. Names that differ in their numbers alone have a separate quota, so that other names stay known.
// Threads: one at a time.
class NameQuota {
 public:
  static constexpr uint32_t kMaxAlike = 10'000;
  static constexpr uint32_t kMaxNames = 100'000;
  static constexpr size_t kMaxNameBytes = 64u << 20;

  // Whether one more name is taken.
  [[nodiscard]] bool admit(std::string_view name) {
    if (names_ == kMaxNames || bytes_ + name.size() > kMaxNameBytes) return false;
    uint32_t& alike = alike_[without_numbers(name)];
    if (alike == kMaxAlike) return false;
    ++alike;
    ++names_;
    bytes_ += name.size();
    return true;
  }

 private:
  [[nodiscard]] static std::string without_numbers(std::string_view name) {
    std::string text;
    for (const char letter : name) {
      const bool is_digit = letter >= '0' && letter <= '9';
      if (!is_digit) {
        text += letter;
      } else if (!text.ends_with('0')) {
        text += '0';
      }
    }
    return text;
  }

  std::unordered_map<std::string, uint32_t> alike_;
  uint32_t names_ = 0;
  size_t bytes_ = 0;
};

}  // namespace bragg
