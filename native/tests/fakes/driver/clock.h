// The clock of the virtual GPUs. Virtual time starts at CLOCK_REALTIME, moves by Knob::CallNs with each driver call and
// jumps when a call waits for the device; so a program takes the same virtual time on any machine. Threads: any.
#pragma once

#include <cstdint>

namespace bragg::fake::clock {

[[nodiscard]] uint64_t now_ns() noexcept;
// Time passes by one driver call; returns the new time.
uint64_t pass_call() noexcept;
void wait_until(uint64_t time_ns) noexcept;

}  // namespace bragg::fake::clock
