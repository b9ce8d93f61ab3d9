// The processor time of the recorder's own threads, of the whole process, and what its main thread could not have.
#pragma once

#include <cstdint>

namespace bragg {

// Lives as long as a thread of the recorder does, on that thread.
class CountedThread {
 public:
  CountedThread() noexcept;
  ~CountedThread();
  CountedThread(const CountedThread&) = delete;
  CountedThread& operator=(const CountedThread&) = delete;

 private:
  int place_;
};

struct CpuTimes {
  uint64_t recorder_ns = 0;
  uint64_t process_ns = 0;    // with that
  int64_t main_ready_ns = 0;  // the main thread was ready, but had no CPU
};
[[nodiscard]] CpuTimes cpu_times() noexcept;
void forget_counted_threads() noexcept;  // in a forked child

[[nodiscard]] uint32_t usable_cores() noexcept;

// What the recorder's threads take away from the program's: nothing, as long as there are cores that are idle.
[[nodiscard]] constexpr uint64_t taken_from_program_ns(const CpuTimes& spent, uint64_t elapsed_ns, uint32_t cores) {
  const uint64_t all_ns = elapsed_ns * cores;
  const uint64_t others_ns = spent.process_ns > spent.recorder_ns ? spent.process_ns - spent.recorder_ns : 0;
  const uint64_t idle_ns = all_ns > others_ns ? all_ns - others_ns : 0;
  return spent.recorder_ns > idle_ns ? spent.recorder_ns - idle_ns : 0;
}

}  // namespace bragg
