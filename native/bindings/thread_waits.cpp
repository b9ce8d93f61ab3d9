#include "bindings/thread_waits.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "context/clock.h"

namespace bragg {
namespace {

// Less than this may be interrupts, or the time between the readings of two clocks.
constexpr int64_t kLeastShare = 10;
constexpr int64_t kLeastNs = 50'000;

}  // namespace

int64_t ThreadWaits::since_last(int64_t elapsed_ns) noexcept {
  const int64_t ran = system_ns(CLOCK_THREAD_CPUTIME_ID);
  const int64_t before = std::exchange(ran_ns_, ran);
  if (before < 0) {
    ready_ns_ = ready_ns();
    return 0;
  }
  const int64_t not_running = elapsed_ns - (ran - before);
  if (not_running < std::max(kLeastNs, elapsed_ns / kLeastShare)) return 0;
  const int64_t ready = ready_ns();  // 1 us: only where it matters
  const int64_t waited = not_running - (ready - std::exchange(ready_ns_, ready));
  return waited < std::max(kLeastNs, elapsed_ns / kLeastShare) ? 0 : waited;
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
