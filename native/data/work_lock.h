// The lock around the consumer-side state.
#pragma once

#include <mutex>

#include "context/blocked_signals.h"
#include "data/recorder.h"

namespace bragg {

class Recorder::WorkLock {
 public:
  explicit WorkLock(std::mutex& mutex) : lock_(mutex) {}

 private:
  BlockedSignals blocked_;
  std::lock_guard<std::mutex> lock_;
};

}  // namespace bragg
