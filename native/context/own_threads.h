// Threads of the recorder. A process ends with the last thread of its program, so these must not keep it alive.
#pragma once

namespace bragg {

// The calling thread is the recorder's, until it ends.
void note_own_thread();
[[nodiscard]] bool is_own_thread(int id) noexcept;
void forget_own_threads() noexcept;  // in a forked child

// The main thread has ended by itself (`pthread_exit`), and no thread is left but the recorder's. A machine that hides
// /proc is never such a process. Costs one small file while the main thread lives.
[[nodiscard]] bool only_own_threads_are_left() noexcept;

}  // namespace bragg
