// The threads of a recorder. One reads what the program's threads tell, one polls and flushes sources, one writes
// captures: none waits for what another one does.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "context/consumer_signal.h"

namespace bragg {

// Owned by its threads too: one that hangs in a call of the driver is left behind.
struct RecorderThreads {
  struct Member {
    std::thread thread;
    std::atomic<bool> has_ended{false};
  };
  std::atomic<bool> stopping{false};
  ConsumerSignal source_signal;
  ConsumerSignal writer_signal;
  std::atomic<uint64_t> flushes_wanted{0};
  std::atomic<uint64_t> flushes_done{0};
  std::atomic<bool> forces_flush{false};     // the next one
  std::atomic<bool> owes_collecting{false};  // sources were not told what to collect, as they did not respond
  std::atomic<int64_t> source_call_ns{0};    // since when it is in calls of sources, which may hang; 0: it is not
  std::array<Member, 3> members;             // readers of rings, sources, captures
};

}  // namespace bragg
