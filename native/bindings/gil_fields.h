#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// How the main interpreter's threads take turns.
struct bragg_gil_fields {
  unsigned long* interval_us;       // a thread that waits asks for the GIL after so long without a sign that it is free
  const unsigned long* n_switches;  // to another thread
  const void* request;              // bit 0: the thread that has the GIL was asked for it; memory that may be freed
};

// 0: it has no GIL. Threads: any, without the GIL.
int bragg_find_gil(struct bragg_gil_fields* fields);

#ifdef __cplusplus
}
#endif
