#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// The thread state of the program's main thread, which is not the caller's to keep. Threads: any, GIL.
const void* bragg_main_thread_state(void);

// Makes the main thread look for pending calls at its next check, if it is the one that runs: 1, else 0.
// Before 3.13 a call that another thread adds waits until the main thread takes the GIL anew, so what releases the
// GIL (NumPy, I/O) would be sampled, and what runs in between never. Threads: any, without the GIL.
int bragg_remind_main_thread(const void* main_state);

#ifdef __cplusplus
}
#endif
