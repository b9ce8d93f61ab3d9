// When to sample, so that it costs no more than a share of the program's time.
#pragma once

#include <cstdint>

namespace bragg {

// What a window costs: the calls that open and close it, which the program may wait for, and what it runs slower
// meanwhile, as its launches per second tell. A window opens once the time so far has paid for those before and for one
// more, so that a short run stays within its share, too; only the first one opens at once. Threads: one at a time.
class DutyCycle {
 public:
  explicit DutyCycle(double budget) : budget_(budget) {}

  [[nodiscard]] bool is_open() const { return is_open_; }
  // Whether the window, or the gap before the next one, is over. `launches`: of the program so far. A window begins
  // with the first of them: beside other programs, a thread that waited for its opening may come back late. After a
  // while without one it is over.
  [[nodiscard]] bool is_due(int64_t now_ns, uint64_t launches);

  // At the end of the calls that took `call_ns`.
  void opened(int64_t now_ns, int64_t call_ns, uint64_t launches);
  void closed(int64_t now_ns, int64_t call_ns, uint64_t launches);

  // How much longer the program takes while it is sampled: 0.5 is half as long again.
  [[nodiscard]] double slowdown() const;
  // Share of the time since the first window that sampling has cost. 0: before.
  [[nodiscard]] double reached(int64_t now_ns) const;
  [[nodiscard]] uint64_t windows() const { return windows_; }
  [[nodiscard]] int64_t open_ns() const { return open_ns_; }

 private:
  // Launches and time, of which what is long ago counts less.
  struct Rate {
    double launches = 0;
    double ns = 0;
    void add(uint64_t more, int64_t more_ns);
  };
  [[nodiscard]] double lost_in_windows(int64_t windows_ns) const;
  [[nodiscard]] double cost_ns() const;
  void leave(Rate& rate, int64_t now_ns, int64_t call_ns, uint64_t launches);

  double budget_;
  bool is_open_ = false;
  int64_t due_ns_ = 0;
  int64_t first_ns_ = 0;
  int64_t opened_ns_ = 0;
  int64_t since_ns_ = 0;  // of the window or gap
  uint64_t launches_ = 0;
  Rate in_windows_;
  Rate in_gaps_;
  double switch_ns_ = 0;  // of the last window's calls
  double all_switches_ns_ = 0;
  uint64_t windows_ = 0;
  int64_t open_ns_ = 0;
};

}  // namespace bragg
