#include "backends/threaded_source.h"

#include <thread>
#include <utility>

#include "context/blocked_signals.h"
#include "context/own_threads.h"

namespace bragg {

void begin_detached_thread(std::function<void()> run) {
  const BlockedSignals blocked;  // for the thread, too
  std::thread([run = std::move(run)] {
    note_own_thread();
    run();
  }).detach();
}

}  // namespace bragg
