// Threads of the recorder. A process ends with the last thread of its program, so these must not keep it alive.
#pragma once

#include <cstdint>

namespace bragg {

[[nodiscard]] int thread_id() noexcept;  // of the caller, as the system counts them
// As the system calls it: 'R' for one that runs or waits for a core; 0: not known, as on a machine that hides /proc.
[[nodiscard]] char thread_state(int id) noexcept;
// How often it has waited, if it now runs or waits for a core; else, or if that is not known, -1.
[[nodiscard]] int64_t waits_if_runnable(int id) noexcept;

// The calling thread is the recorder's, until it ends.
void note_own_thread();
[[nodiscard]] bool is_own_thread(int id) noexcept;
void forget_own_threads() noexcept;  // in a forked child

// The main thread has ended by itself (`pthread_exit`), and no thread is left but the recorder's. A machine that hides
// /proc is never such a process. Costs one small file while the main thread lives.
[[nodiscard]] bool only_own_threads_are_left() noexcept;

}  // namespace bragg
