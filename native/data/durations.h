// How long kernels took, as a histogram each: percentiles without keeping every event.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "context/frame_table.h"
#include "context/hash.h"
#include "data/changing_rows.h"
#include "data/per_id.h"

namespace bragg {

// 16 steps an octave: the middle of a bucket is within 3.1 % of every duration in it. Below 16 ns buckets are exact.
[[nodiscard]] constexpr uint32_t duration_bucket(uint64_t duration_ns) noexcept {
  constexpr uint32_t kStepBits = 4;
  if (duration_ns < 1u << kStepBits) return static_cast<uint32_t>(duration_ns);
  const auto octave = static_cast<uint32_t>(std::bit_width(duration_ns)) - kStepBits;
  return (octave << kStepBits) + static_cast<uint32_t>(duration_ns >> (octave - 1)) - (1u << kStepBits);
}
static_assert(duration_bucket(15) == 15 && duration_bucket(16) == 16 && duration_bucket(31) == 31);
static_assert(duration_bucket(32) == 32 && duration_bucket(33) == 32 && duration_bucket(63) == 47);

struct DurationRow {
  FrameId frame = FrameId::Root;
  uint32_t bucket = 0;
  uint64_t count = 0;
  int64_t first_ns = 0;  // when the first of them began
};

// Threads: consumer only.
class Durations {
 public:
  void add(FrameId frame, uint64_t duration_ns, int64_t start_ns) {
    const uint32_t bucket = duration_bucket(duration_ns);
    uint32_t& last = last_[frame];  // most launches of a kernel take about as long as the one before
    if (last == kNone || rows_[last].bucket != bucket) {
      const auto [found, is_new] = index_.try_emplace(pair_of(frame, bucket), kNone);
      if (is_new) found->second = rows_.append({frame, bucket, 0, start_ns});
      last = found->second;
    }
    DurationRow& row = rows_.change(last);
    ++row.count;
    row.first_ns = std::min(row.first_ns, start_ns);
  }

  [[nodiscard]] std::vector<DurationRow> take_changes() { return rows_.take_changes(); }
  [[nodiscard]] const std::vector<DurationRow>& rows() const { return rows_.all(); }

 private:
  PerId<FrameId, uint32_t> last_{kNone};  // its row
  std::unordered_map<uint64_t, uint32_t> index_;
  ChangingRows<DurationRow> rows_;
};

}  // namespace bragg
