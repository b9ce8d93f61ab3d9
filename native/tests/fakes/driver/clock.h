// The clock of the virtual GPUs. Virtual time starts at CLOCK_REALTIME, moves by Knob::CallNs with each driver call and
// jumps when a call waits for the device; so a program takes the same virtual time on any machine. Threads: any.
#pragma once

#include <cstdint>

namespace bragg::fake::clock {

[[nodiscard]] uint64_t now_ns() noexcept;
// Time passes by one driver call; returns the new time.
uint64_t pass_call() noexcept;
// For ever, where this is further away than any work takes.
void wait_until(uint64_t time_ns) noexcept;

// Work of an hour is meant to stand for a GPU that hangs.
inline constexpr uint64_t kEndlessNs = 3'600'000'000'000;
// Some work ends then, which a tool may wait for.
void note_end_of_work(uint64_t time_ns) noexcept;
// A tool waits for the GPU without calling the driver: virtual time jumps to the end of all work but the endless one.
void jump_to_end_of_work() noexcept;

}  // namespace bragg::fake::clock
