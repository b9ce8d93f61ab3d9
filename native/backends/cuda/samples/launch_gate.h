// Keeps launches, and calls that load code, apart from calls of CUPTI that must not meet them.
#pragma once

namespace bragg {

class ThreadContext;

// Seen with CUPTI 13.0: cuptiPCSamplingStop and Disable, and a launch of another thread at the same time, wait for each
// other for ever (H200); so do cuptiPCSamplingStart and cuKernelGetFunction that loads lazily, which hold CUPTI's lock
// and the driver's and ask for the other one (H100). So they are called while no thread is inside such a call, and
// threads that come to one wait at its beginning, where they hold no lock of the driver.
class LaunchGate {
 public:
  static LaunchGate& instance();

  // ENTER and EXIT callbacks of driver calls that put work on a GPU, or make code, streams or contexts. No thread waits
  // longer than for the slowest first start.
  void enter(ThreadContext& thread) noexcept;
  void leave(ThreadContext& thread) noexcept;

  // While it exists no other thread is inside such a call; false: one does not come out, so they continue as they were.
  class Closed {
   public:
    Closed();
    ~Closed();
    Closed(const Closed&) = delete;
    Closed& operator=(const Closed&) = delete;
    [[nodiscard]] explicit operator bool() const { return is_closed_; }

   private:
    bool is_closed_ = false;
  };

  void after_fork_in_child();

 private:
  [[nodiscard]] bool close();
  void open();
};

}  // namespace bragg
