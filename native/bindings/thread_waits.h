#pragma once

#include <cstdint>

#include "context/ready_time.h"

namespace bragg {

// How much of its time a thread waits: for input, a lock, another process, the GIL. Measured, not told from names: time
// in which it neither ran nor was ready to run, and its share of that without a core. Threads: the one that is
// measured.
class ThreadWaits {
 public:
  // Of the last `elapsed_ns`, which reach back to the call before. 0 where it is too little to tell, and the first
  // time.
  [[nodiscard]] int64_t since_last(int64_t elapsed_ns) noexcept;
  void forget() noexcept;  // in a forked child: another thread

 private:
  int64_t ran_ns_ = -1;
  int64_t ready_ns_ = 0;
  ReadyTime ready_{ReadyTime::kOfCaller};
};

}  // namespace bragg
