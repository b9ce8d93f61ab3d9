#include "backends/threaded_source.h"

#include <thread>

#include "context/blocked_signals.h"

namespace bragg {

void begin_detached_thread(std::function<void()> run) {
  const BlockedSignals blocked;  // for the thread, too
  std::thread(std::move(run)).detach();
}

}  // namespace bragg
