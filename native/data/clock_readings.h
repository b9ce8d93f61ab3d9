// The recorder's clock beside other ones every few seconds, for whoever puts times of several hosts side by side.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/json.h"

namespace bragg {

// Rows of the recorder's time and of `kOthers` clocks that were read at that moment. Threads: one at a time.
template <size_t kOthers>
class ClockReadings {
 public:
  static constexpr int64_t kApartNs = 5'000'000'000;
  // Of more every second one goes, and they come half as often: META of 1 KB, 0.3 MB a day.
  static constexpr size_t kMostKept = 16;

  [[nodiscard]] bool is_due(int64_t now_ns) const { return rows_.empty() || now_ns - rows_.back()[0] >= apart_ns_; }

  // One that comes before it is due, as at the end of a phase, stays the last one only until the next.
  void add(int64_t now_ns, const std::array<int64_t, kOthers>& others) {
    const size_t count = rows_.size();
    if (count >= 2 && rows_[count - 1][0] - rows_[count - 2][0] < apart_ns_) rows_.pop_back();
    if (rows_.size() == kMostKept) thin_out();
    auto& row = rows_.emplace_back();
    row[0] = now_ns;
    for (size_t i = 0; i < kOthers; ++i) row[i + 1] = others[i];
  }

  // JSON array of rows.
  [[nodiscard]] std::string json() const {
    return json_array(
        rows_, [](const auto& row) { return json_array(row, [](int64_t value) { return std::to_string(value); }); });
  }

 private:
  void thin_out() {
    for (size_t i = 0; i < kMostKept / 2; ++i) rows_[i] = rows_[2 * i];
    rows_.resize(kMostKept / 2);
    apart_ns_ *= 2;
  }

  std::vector<std::array<int64_t, kOthers + 1>> rows_;
  int64_t apart_ns_ = kApartNs;
};

// CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW.
using SystemClockReadings = ClockReadings<3>;

void read_system_clocks(SystemClockReadings& readings);

}  // namespace bragg
