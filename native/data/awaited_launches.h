// The launches of one phase whose device records have not come.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace bragg {

// The time between two drains; a drain waits for what was launched before it began. Numbers wrap around: a drain ends
// long before 255 others have begun.
using DrainRound = uint8_t;

// Threads: one at a time.
class AwaitedLaunches {
 public:
  void add(DrainRound round) {
    ++by_round_[round];
    ++all_;
  }
  // Its first record came, or it will have none.
  void remove(DrainRound round) {
    if (by_round_[round] == 0) return;
    --by_round_[round];
    --all_;
    given_up_ = std::min(given_up_, all_);
  }
  // Launches of `round` and earlier rounds that were not given up. `current`: the round that launches are made in.
  [[nodiscard]] uint64_t until(DrainRound round, DrainRound current) const {
    const uint64_t old = all_until(round, current);
    return old - std::min(old, given_up_);
  }
  [[nodiscard]] uint64_t count() const { return all_ - given_up_; }
  // Nobody waits for them any more; their records count if they come all the same.
  void give_up(DrainRound round, DrainRound current) { given_up_ = std::max(given_up_, all_until(round, current)); }
  void give_up_all() { given_up_ = all_; }
  [[nodiscard]] uint64_t given_up() const { return given_up_; }

 private:
  [[nodiscard]] uint64_t all_until(DrainRound round, DrainRound current) const {
    uint64_t old = all_;
    while (current != round) old -= by_round_[current--];
    return old;
  }

  std::array<uint64_t, 256> by_round_{};
  uint64_t all_ = 0;
  uint64_t given_up_ = 0;
};

}  // namespace bragg
