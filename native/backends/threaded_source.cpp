#include "backends/threaded_source.h"

#include <pthread.h>

#include <csignal>
#include <thread>

namespace bragg {

void begin_detached_thread(std::function<void()> run) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(std::move(run)).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace bragg
