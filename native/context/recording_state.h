// Which sessions record at this moment, as bit masks every event copies into its record.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace bragg {

using SessionMask = uint32_t;  // bit i: session slot i
inline constexpr uint32_t kMaxSessions = 16;

// Which calls of the GPU's API become nodes: those that wait for the GPU, or all that do something.
enum class ApiLevel : uint8_t { Off, Sync, All };

struct alignas(64) RecordingState {
  std::atomic<SessionMask> existing{0};  // started and not yet stopped
  // Bits 16 to 31: the sessions of the slots. A session takes another slot for each of its phases.
  std::atomic<SessionMask> active{0};
  std::atomic<SessionMask> python{0};      // existing, with Python call paths
  std::atomic<SessionMask> native{0};      // of these, with the C and C++ functions that launches come from
  std::atomic<SessionMask> trace{0};       // existing, keeping every event
  std::atomic<SessionMask> returns{0};     // existing, with the time at which launches return
  std::atomic<SessionMask> api_calls{0};   // existing, with all calls of the GPU's API
  std::atomic<SessionMask> sync_calls{0};  // existing, with those that wait
  std::atomic<uint32_t> api_epoch{1};      // calls that were open when it changed are not followed any more
  std::array<std::atomic<uint8_t>, kMaxSessions> session_of_slot{};
  std::atomic<bool> follows_tasks{false};  // a scope was entered in a task: threads look which one they run

  [[nodiscard]] auto masks_of_existing() noexcept {
    return std::array{&existing, &python, &native, &trace, &returns, &api_calls, &sync_calls};
  }
};

inline RecordingState recording_state;

inline constexpr uint32_t kSessionShift = kMaxSessions;
inline constexpr SessionMask kSlots = (1u << kSessionShift) - 1;

[[nodiscard, gnu::cold, gnu::noinline]] inline SessionMask slots_of(SessionMask sessions, SessionMask now) noexcept {
  SessionMask slots = 0;
  for (uint32_t slot = 0; slot < kMaxSessions; ++slot)
    if ((now >> slot & 1) != 0 &&
        (sessions >> recording_state.session_of_slot[slot].load(std::memory_order_relaxed) & 1) != 0)
      slots |= 1u << slot;
  return slots;
}

// The slots that record now, of the sessions that also recorded when `active` was `then`.
[[nodiscard]] inline SessionMask still_active(SessionMask then) noexcept {
  const SessionMask now = recording_state.active.load(std::memory_order_acquire);  // before the sessions of its slots
  const SessionMask sessions = (then & now) >> kSessionShift;
  return sessions == now >> kSessionShift ? now & kSlots : slots_of(sessions, now);
}

// Whether any session does, also a paused one.
[[nodiscard]] inline bool follows_api_calls() noexcept {
  return (recording_state.api_calls.load(std::memory_order_relaxed) |
          recording_state.sync_calls.load(std::memory_order_relaxed)) != 0;
}

// What the sessions that record want together: paths are the same in all of them.
[[nodiscard]] inline ApiLevel wanted_api_level() noexcept {
  const SessionMask active = recording_state.active.load();
  if ((active & recording_state.api_calls.load()) != 0) return ApiLevel::All;
  return (active & recording_state.sync_calls.load()) != 0 ? ApiLevel::Sync : ApiLevel::Off;
}

[[nodiscard]] inline bool recording() noexcept { return recording_state.active.load(std::memory_order_relaxed) != 0; }

}  // namespace bragg
