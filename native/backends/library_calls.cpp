#include "backends/library_calls.h"

#include <pthread.h>

#include "context/clock.h"
#include "context/own_threads.h"

namespace bragg {

void LibraryCalls::note_thread() {
  clockid_t clock{};
  if (pthread_getcpuclockid(pthread_self(), &clock) != 0) return;
  cpu_clock_ = clock;
  thread_ = thread_id();
}

CallLook LibraryCalls::look() const {
  const int thread = thread_;
  if (thread == 0) return {.call = number_};
  return {.call = number_, .is_runnable = thread_state(thread) == 'R', .cpu_ns = system_ns(cpu_clock_)};
}

}  // namespace bragg
