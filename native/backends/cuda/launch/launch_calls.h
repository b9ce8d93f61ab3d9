// The driver calls that put work on the device, by number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "backends/cuda/driver/cupti_cbids.h"

namespace bragg::cuda_backend {

inline constexpr size_t kLaunchCalls = std::size(cupti::launch_calls);
inline constexpr size_t kCalls = kLaunchCalls + std::size(cupti::memory_calls);
static_assert(kCalls < 255);

[[nodiscard]] constexpr const cupti::DriverCall& call_at(size_t index) {
  return index < kLaunchCalls ? cupti::launch_calls[index] : cupti::memory_calls[index - kLaunchCalls];
}

// Driver call id -> 1 + index of its name; 0: a call that puts no work on the device.
inline constexpr auto kCallOf = [] {
  std::array<uint8_t, 1024> calls{};
  for (size_t i = 0; i < kCalls; ++i) calls[call_at(i).cbid] = static_cast<uint8_t>(i + 1);
  return calls;
}();

// Of a call that kCallOf has, in CallNames.
[[nodiscard]] uint8_t number_of_call(uint32_t cbid) noexcept;
void number_calls();  // before the first of them

// Calls with exactly one device record; the others (graphs, copies, several devices) may have more.
[[nodiscard]] constexpr bool has_one_record(uint32_t cbid) {
  return cupti::function_offset(cbid) != cupti::kNoFunction;
}

}  // namespace bragg::cuda_backend
