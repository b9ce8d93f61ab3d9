// How many collectives a process has entered, by process group: while a job hangs it says which rank has not come.
#pragma once

#include <cstdint>
#include <string_view>

namespace bragg::collective_progress {

struct Entered {
  const char* group;
  const char* last;  // the collective that was entered last
  uint64_t count;
  int64_t at_ns;  // when, CLOCK_MONOTONIC
};

// Threads: the program's, at each collective. No lock; memory at the first collective of each kind alone.
void note(std::string_view group, std::string_view collective) noexcept;

// Calls `tell` for each group. Threads: any.
void tell_all(void (*tell)(void* context, const Entered&), void* context);

}  // namespace bragg::collective_progress
