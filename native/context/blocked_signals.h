// A scope in which this thread takes no signals.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace bragg {

// For the holder of a lock: the handler of a signal that interrupts it would wait for the lock for ever.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace bragg
