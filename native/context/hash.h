// How hash tables spread their keys.
#pragma once

#include <concepts>
#include <cstdint>

#include "context/ids.h"

namespace bragg {

// 2^32 and 2^64 divided by the golden ratio, made odd: keys that follow one another land far apart (Knuth, The Art of
// Computer Programming, volume 3, section 6.4). A bit of the product depends on the bits of the key up to it alone, so
// the upper bits are the good ones.
[[nodiscard]] constexpr uint32_t spread(uint32_t key) noexcept { return key * 0x9E3779B1u; }
[[nodiscard]] constexpr uint64_t spread(uint64_t key) noexcept { return key * 0x9E3779B97F4A7C15u; }

// A hash with one part more. The order of parts counts.
[[nodiscard]] constexpr uint64_t mix(uint64_t hash, uint64_t part) noexcept {
  hash = spread(hash ^ part);
  return hash ^ (hash >> 29);
}

[[nodiscard]] constexpr auto bits_of(std::unsigned_integral auto part) noexcept { return part; }
[[nodiscard]] constexpr auto bits_of(Id auto id) noexcept { return number_of(id); }

[[nodiscard]] constexpr uint64_t hash_of(auto... parts) noexcept {
  uint64_t hash = 1;
  ((hash = mix(hash, bits_of(parts))), ...);
  return hash;
}

// Two numbers of 32 bits as one.
[[nodiscard]] constexpr uint64_t pair_of(auto high, auto low) noexcept {
  static_assert(sizeof(high) == sizeof(uint32_t) && sizeof(low) == sizeof(uint32_t));
  return uint64_t{bits_of(high)} << 32 | bits_of(low);
}

}  // namespace bragg
