// The lock around the consumer-side state.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <mutex>

#include "data/recorder.h"

namespace bragg {

// Signals are blocked meanwhile: the handler of one that interrupted the holder would wait for the lock forever.
class Recorder::WorkLock {
 public:
  explicit WorkLock(std::mutex& mutex) : mutex_(mutex) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    mutex_.lock();
  }
  ~WorkLock() {
    mutex_.unlock();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WorkLock(const WorkLock&) = delete;
  WorkLock& operator=(const WorkLock&) = delete;

 private:
  std::mutex& mutex_;
  sigset_t before_{};
};

}  // namespace bragg
