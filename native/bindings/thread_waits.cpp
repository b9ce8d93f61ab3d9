#include "bindings/thread_waits.h"

#include <utility>

#include "context/clock.h"
#include "context/waited_time.h"

namespace bragg {

int64_t ThreadWaits::since_last(int64_t elapsed_ns) noexcept {
  const int64_t ran = system_ns(CLOCK_THREAD_CPUTIME_ID);
  const int64_t before = std::exchange(ran_ns_, ran);
  if (before < 0) {
    ready_ns_ = ready_.ns();
    return 0;
  }
  if (!is_wait(elapsed_ns - (ran - before), elapsed_ns)) return 0;
  const int64_t ready = ready_.ns();  // only where it matters
  return waited_time(elapsed_ns, ran - before, ready - std::exchange(ready_ns_, ready));
}

void ThreadWaits::forget() noexcept {
  ready_.forget();
  ran_ns_ = -1;
  ready_ns_ = 0;
}

}  // namespace bragg
