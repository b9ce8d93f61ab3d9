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

struct LaunchCall {
  uint8_t number = 0;            // 1 + index of its name; 0: it puts no work on the device
  bool launches_kernel = false;  // one, and it has exactly one record: graphs, copies, several devices may have more
  bool launches_graph = false;
  uint8_t function_offset = 0;  // in its parameters: of the kernel's handle

  [[nodiscard]] constexpr bool launches() const noexcept { return number != 0 && number <= kLaunchCalls; }
};

// By driver call id.
inline constexpr auto kLaunchCallOf = [] {
  std::array<LaunchCall, 1024> calls{};
  for (size_t i = 0; i < kCalls; ++i) {
    const uint32_t cbid = call_at(i).cbid;
    const size_t offset = cupti::function_offset(cbid);
    LaunchCall& call = calls[cbid];
    call.number = static_cast<uint8_t>(i + 1);
    call.launches_kernel = offset != cupti::kNoFunction;
    call.launches_graph = cupti::is_graph_launch(cbid);
    if (call.launches_kernel) call.function_offset = static_cast<uint8_t>(offset);
  }
  return calls;
}();

[[nodiscard]] inline bool is_launch_call(uint32_t cbid) noexcept {
  return cbid < kLaunchCallOf.size() && kLaunchCallOf[cbid].number != 0;
}
[[nodiscard]] inline const LaunchCall& launch_call(uint32_t cbid) noexcept { return kLaunchCallOf[cbid]; }

// In CallNames.
[[nodiscard]] uint8_t number_of(const LaunchCall& call) noexcept;
void number_calls();  // before the first of them

}  // namespace bragg::cuda_backend
