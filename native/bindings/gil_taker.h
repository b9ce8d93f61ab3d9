#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace bragg {

// A thread that takes the GIL for one that may not wait for it without end. CPython's threads wait 5 ms for a sign that
// the GIL is free, then ask the one that has it, which then lets them have it. Each sign makes them wait anew: of a
// thread that gives the GIL away more often, and takes it back before another one has woken, they would never get it.
// Such a thread is asked sooner, by CPython itself: only who is certain to take the GIL may ask for it.
class GilTaker {
 public:
  using Clock = std::chrono::steady_clock;
  // `call` gets how long the GIL was waited for.
  explicit GilTaker(std::function<void(Clock::duration)> call);

  // Waits until `call` has returned, for at most 12 ms; one that has not by then is not asked for again. Threads: one,
  // without the GIL.
  void take() noexcept;
  [[nodiscard]] unsigned long python_id() noexcept;  // as Python numbers it
  void tell_to_stop() noexcept;
  void join() { thread_.join(); }  // without the GIL

 private:
  using Lock = std::unique_lock<std::mutex>;
  void run();
  [[nodiscard]] bool is_done_after(Lock& lock, std::chrono::microseconds time) {
    return answer_.wait_for(lock, time, [this] { return !is_asked_ || is_stopping_; });
  }

  std::function<void(Clock::duration)> call_;
  std::mutex mutex_;
  std::condition_variable question_, answer_;
  bool is_asked_ = false, is_stopping_ = false;
  std::thread thread_;
};

// What `sys.getswitchinterval` tells is what the program has set, unless the GIL is being waited for as described
// above. In a forked child, whose parent may have been in that wait.
void restore_switch_interval() noexcept;

}  // namespace bragg
