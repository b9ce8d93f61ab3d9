#include "bindings/thread_waits.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "context/clock.h"
#include "context/waited_time.h"

namespace bragg {

int64_t ThreadWaits::since_last(int64_t elapsed_ns) noexcept {
  const int64_t ran = system_ns(CLOCK_THREAD_CPUTIME_ID);
  const int64_t before = std::exchange(ran_ns_, ran);
  if (before < 0) {
    ready_ns_ = ready_ns();
    return 0;
  }
  if (!is_wait(elapsed_ns - (ran - before), elapsed_ns)) return 0;
  const int64_t ready = ready_ns();  // 1 us: only where it matters
  return waited_time(elapsed_ns, ran - before, ready - std::exchange(ready_ns_, ready));
}

void ThreadWaits::forget() noexcept {
  file_.close();
  *this = {};
}

// "<ns it ran> <ns it was ready> <times it ran>"
int64_t ThreadWaits::ready_ns() noexcept {
  if (file_.number() < 0) file_ = OwnDescriptor(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
  const int file = file_.number();
  char text[96];
  const ssize_t size = file >= 0 ? pread(file, text, sizeof text - 1, 0) : 0;
  if (size <= 0) return ready_ns_;
  text[size] = '\0';
  char* end = nullptr;
  (void)std::strtoll(text, &end, 10);
  return std::strtoll(end, nullptr, 10);
}

}  // namespace bragg
