// A flag for each of what is open within each other: whether its begin did something that its end takes back.
#pragma once

#include <cstdint>

namespace bragg {

// The innermost 64 are known; what is open deeper counts as set.
class NestedFlags {
 public:
  // `around`: the flag of an end that has no begin.
  constexpr explicit NestedFlags(bool around) noexcept : bits_(around ? ~uint64_t{0} : 0) {}
  void push(bool flag) noexcept { bits_ = bits_ << 1 | (flag ? 1 : 0); }
  [[nodiscard]] bool pop() noexcept {
    const bool innermost = (bits_ & 1) != 0;
    bits_ = bits_ >> 1 | uint64_t{1} << 63;
    return innermost;
  }

 private:
  uint64_t bits_;  // the innermost is the lowest
};

}  // namespace bragg
