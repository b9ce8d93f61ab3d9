// Which sessions record at this moment, as bit masks every event copies into its record.
#pragma once

#include <atomic>
#include <cstdint>

namespace bragg {

using SessionMask = uint32_t;  // bit i: session slot i
inline constexpr uint32_t kMaxSessions = 16;

struct RecordingState {
  std::atomic<SessionMask> existing{0};  // started and not yet stopped
  std::atomic<SessionMask> active{0};
  std::atomic<SessionMask> python{0};  // existing, with Python call paths
  std::atomic<SessionMask> trace{0};   // existing, keeping every event
};

inline RecordingState recording_state;

[[nodiscard]] inline bool recording() noexcept { return recording_state.active.load(std::memory_order_relaxed) != 0; }

}  // namespace bragg
