#include "data/recorder_cpu.h"

#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <ctime>

#include "context/clock.h"
#include "context/ready_time.h"

namespace bragg {
namespace {

constexpr int kMaxThreads = 8;
constexpr int kNoPlace = -1;

struct Places {
  std::array<std::atomic<uint64_t>, kMaxThreads> clocks{};  // clockid_t + 2^32; 0: free
  std::atomic<uint64_t> ended_ns{0};
};
constinit Places places;
constinit ReadyTime main_thread{ReadyTime::kOfMainThread};
constexpr uint64_t kTaken = uint64_t{1} << 32;

uint64_t time_of(uint64_t clock) noexcept {
  timespec time{};
  if (clock_gettime(static_cast<clockid_t>(static_cast<uint32_t>(clock)), &time) != 0) return 0;
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

CountedThread::CountedThread() noexcept : place_(kNoPlace) {
  clockid_t clock{};
  if (pthread_getcpuclockid(pthread_self(), &clock) != 0) return;
  for (int i = 0; i < kMaxThreads && place_ == kNoPlace; ++i) {
    uint64_t free = 0;
    if (places.clocks[static_cast<size_t>(i)].compare_exchange_strong(free, kTaken | static_cast<uint32_t>(clock)))
      place_ = i;
  }
}

CountedThread::~CountedThread() {
  if (place_ == kNoPlace) return;
  const uint64_t clock = places.clocks[static_cast<size_t>(place_)].exchange(0);
  if (clock != 0) places.ended_ns.fetch_add(time_of(clock));
}

CpuTimes cpu_times() noexcept {
  CpuTimes times{places.ended_ns.load(), static_cast<uint64_t>(system_ns(CLOCK_PROCESS_CPUTIME_ID)), main_thread.ns()};
  for (const auto& clock : places.clocks)
    if (const uint64_t taken = clock.load(); taken != 0) times.recorder_ns += time_of(taken);
  return times;
}

void forget_counted_threads() noexcept {
  for (auto& clock : places.clocks) clock.store(0);
  places.ended_ns.store(0);
  main_thread.forget();
}

uint32_t usable_cores() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<uint32_t>(CPU_COUNT(&set)) : 1;
}

}  // namespace bragg
