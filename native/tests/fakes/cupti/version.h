// Which CUPTI the fake is: BRAGG_FAKE_CUPTI_VERSION, 12.3 to 13.5, by default 13.0.
#pragma once

#include <cstdint>

namespace bragg::fake {

struct Release {
  const char* name;
  uint32_t api_version;        // what cuptiGetVersion gives
  uint32_t driver_call_count;  // callback ids of the driver API, and one more than the last
};

[[nodiscard]] const Release& emulated_release();

inline constexpr uint32_t kNullBufferAllowed = 27;         // 12.9; before, CUPTI crashes on a null buffer
inline constexpr uint32_t kBuffersPerThread = 130000;      // the default from then on
inline constexpr uint32_t kRecordsInLaunchOrder = 130000;  // seen on 13.0; before, in order of completion
inline constexpr uint32_t kUselessWithoutDriver = 130200;

}  // namespace bragg::fake
