// What operators of a thread have measured since its last sample, by where they stand: a sample of Python is due while
// they run and is taken after them, elsewhere, and would stand for their time a second time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "context/event.h"

namespace bragg {

class MeasuredStretches {
 public:
  // That alternate between two samples; what more operators measure stays at its sample.
  static constexpr size_t kMax = 256;
  static constexpr NodeId kElsewhere = NodeId::None;  // no sample contains the time

  // In the order in which they end. `place`: whose samples contain the time.
  void add(NodeId place, Interval measured) noexcept {
    const int64_t ns = measured.end_ns - measured.start_ns;
    if (Stretch* last = latest_at(place)) {
      last->end_ns = measured.end_ns;
      last->measured_ns += ns;
    } else if (count_ < (place == kElsewhere ? kMax : kMax - 1)) {
      latest_[slot_of(place)] = static_cast<uint8_t>(count_);
      stretches_[count_++] = {place, measured.start_ns, measured.end_ns, ns};
    }
  }

  // Calls give(place, ns) for what was measured in `whole`, and forgets that and all before. Stretches that go on
  // afterwards are as dense everywhere.
  template <class Give>
  void take(Interval whole, Give&& give) noexcept {
    size_t kept = 0;
    for (size_t i = 0; i < count_; ++i) {
      Stretch stretch = stretches_[i];
      (void)stretch.take_until(whole.start_ns);
      if (const int64_t ns = stretch.take_until(whole.end_ns); ns > 0) give(stretch.place, ns);
      if (stretch.measured_ns == 0) continue;
      latest_[slot_of(stretch.place)] = static_cast<uint8_t>(kept);
      stretches_[kept++] = stretch;
    }
    count_ = kept;
  }

 private:
  struct Stretch {
    NodeId place;
    int64_t start_ns;
    int64_t end_ns;
    int64_t measured_ns;

    [[nodiscard]] int64_t take_until(int64_t until_ns) noexcept {
      if (until_ns <= start_ns) return 0;
      const int64_t until = std::min(until_ns, end_ns);
      const double share = static_cast<double>(until - start_ns) / static_cast<double>(end_ns - start_ns);
      const auto taken_ns = static_cast<int64_t>(static_cast<double>(measured_ns) * share);
      start_ns = until;
      measured_ns = until == end_ns ? 0 : measured_ns - taken_ns;
      return taken_ns;
    }
  };
  // The last one; where there are many, any one of the place.
  [[nodiscard]] Stretch* latest_at(NodeId place) noexcept {
    const size_t at = count_ < kMax - 1 ? count_ - 1 : latest_[slot_of(place)];
    return at < count_ && stretches_[at].place == place ? &stretches_[at] : nullptr;
  }
  [[nodiscard]] static size_t slot_of(NodeId place) noexcept { return static_cast<size_t>(place) % kMax; }

  std::array<Stretch, kMax> stretches_;
  std::array<uint8_t, kMax> latest_{};  // of places with this number; where two have it, of one of them
  size_t count_ = 0;
};

}  // namespace bragg
