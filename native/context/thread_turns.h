// Which threads a sampler looks at in a tick: a bounded number, however many there are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace bragg {

enum class Look {
  Idle,    // the thread has not run since it was looked at
  Ran,     // it has
  Placed,  // it has, and where it is was read
};

// Threads in two rings, each looked at in turn: those that ran lately, then all others. Reading a clock takes 0.4 us, a
// place 10 to 20 us: of each ring the clocks of 5 threads are read for each millisecond, and the place of one thread
// for each 2 ms, or at least one. That is 1 % of a core; for ticks of 1 ms 2 %. `Thread` has a member `ran_tick`.
template <class Thread>
class ThreadTurns {
 public:
  explicit ThreadTurns(int64_t interval_us)
      : n_clocks_(static_cast<size_t>(std::max<int64_t>(interval_us / kClockEveryUs, 1))),
        n_places_(static_cast<size_t>(std::max<int64_t>(interval_us / kPlaceEveryUs, 1))) {}

  [[nodiscard]] size_t size() const noexcept { return threads_.size(); }
  [[nodiscard]] size_t clocks_per_tick() const noexcept { return n_clocks_; }

  // All of them, which then come back, with others, by `replace`.
  [[nodiscard]] std::vector<std::unique_ptr<Thread>> take_threads() noexcept {
    n_busy_ = 0;
    return std::exchange(threads_, {});
  }
  void replace(std::vector<std::unique_ptr<Thread>>&& threads) {
    threads_ = std::move(threads);
    const auto ran = [this](const auto& thread) { return ran_lately(*thread); };
    n_busy_ = static_cast<size_t>(std::stable_partition(threads_.begin(), threads_.end(), ran) - threads_.begin());
  }

  // `look(thread, may_read_place)` tells what it found.
  template <class LookAt>
  void look_in_turn(LookAt&& look) {
    ++tick_;
    size_t n_left = n_places_;
    const size_t n_busy = std::min(n_busy_, n_clocks_), n_idle = std::min(threads_.size() - n_busy_, n_clocks_);
    for (size_t i = 0; i < n_busy && n_left > 0; ++i) visit_busy(look, n_left);
    for (size_t i = 0; i < n_idle; ++i) visit_idle(look, n_left);
  }

 private:
  static constexpr int64_t kClockEveryUs = 200, kPlaceEveryUs = 2'000;
  static constexpr uint64_t kLatelyTicks = 100;

  [[nodiscard]] bool ran_lately(const Thread& thread) const {
    return thread.ran_tick != 0 && tick_ - thread.ran_tick < kLatelyTicks;
  }

  template <class LookAt>
  void visit_busy(LookAt&& look, size_t& n_left) {
    if (busy_turn_ >= n_busy_) busy_turn_ = 0;
    std::unique_ptr<Thread>& thread = threads_[busy_turn_];
    note(*thread, look(*thread, true), n_left);
    if (ran_lately(*thread))
      ++busy_turn_;
    else
      std::swap(thread, threads_[--n_busy_]);
  }

  template <class LookAt>
  void visit_idle(LookAt&& look, size_t& n_left) {
    if (idle_turn_ < n_busy_ || idle_turn_ >= threads_.size()) idle_turn_ = n_busy_;
    std::unique_ptr<Thread>& thread = threads_[idle_turn_];
    note(*thread, look(*thread, n_left > 0), n_left);
    if (ran_lately(*thread)) std::swap(thread, threads_[n_busy_++]);
    ++idle_turn_;
  }

  void note(Thread& thread, Look found, size_t& n_left) {
    if (found != Look::Idle) thread.ran_tick = tick_;
    if (found == Look::Placed) --n_left;
  }

  std::vector<std::unique_ptr<Thread>> threads_;  // the first ones ran lately
  size_t n_busy_ = 0, busy_turn_ = 0, idle_turn_ = 0;
  size_t n_clocks_, n_places_;  // in a tick
  uint64_t tick_ = 0;
};

}  // namespace bragg
