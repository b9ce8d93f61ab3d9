// Idle time of devices by why they waited and for which code, over time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "context/calling_context_tree.h"
#include "context/hash.h"
#include "data/changing_rows.h"

namespace bragg {

// Why a device waited. As `bragg.model.idle` numbers them.
enum class IdleKind : uint32_t {
  Late,       // nothing was launched
  Queued,     // what ended the pause was launched just before, and begins
  NotKnown,   // nobody tells when that was launched
  ShortLate,  // the same of pauses under kShortPauseNs
  ShortQueued,
  ShortNotKnown,
  Waited,     // of Queued, what was for another stream, a copy or an event
  FullQueue,  // of Queued, the change from one piece of work to the next that was queued behind it
  ShortWaited,
  ShortFullQueue,
};
inline constexpr uint32_t kIdleKindBits = 4;

// A kernel that was launched in time begins 1 to 2 us after the one before it.
inline constexpr int64_t kShortPauseNs = 3'000;
// From the end of a launch to its start on a device that is free, and from one kernel of a stream to the next: 99 of
// 100 take at most 3.3 us, all but 22 of 70,000 less than this (five programs on an H100). What takes longer waits.
inline constexpr int64_t kStartNs = 10'000;

struct IdleKey {
  int64_t start_ns = 0;  // of the bin
  NodeId node = kRootNode;
  uint32_t device = 0;
  IdleKind kind = IdleKind::Late;
  friend bool operator==(const IdleKey&, const IdleKey&) = default;
};

struct IdleRow {
  IdleKey key;
  uint64_t count = 0;  // pauses with their largest part here, at their end
  uint64_t idle_ns = 0;
  uint64_t longest_ns = 0;
};

// Bins are multiples of their width, which doubles when there are too many rows: bounded however long the run is.
// Threads: consumer only.
class IdleTable {
 public:
  static constexpr size_t kMaxRows = 1u << 15;  // 3 MB; 500 paths have 64 bins

  // A part of a pause, over as many bins as it lasts.
  void add(uint32_t device, IdleKind kind, NodeId node, int64_t start_ns, int64_t end_ns);
  // A pause ended at `end_ns` with a part of `part_ns` at a node; `is_largest`: that is where it counts.
  void note_pause(uint32_t device, IdleKind kind, NodeId node, int64_t end_ns, int64_t part_ns, bool is_largest);

  [[nodiscard]] int64_t bin_ns() const { return int64_t{1} << bin_bits_; }
  [[nodiscard]] std::vector<IdleRow> take_changes() { return rows_.take_changes(); }
  [[nodiscard]] const std::vector<IdleRow>& rows() const { return rows_.all(); }

 private:
  struct KeyHash {
    size_t operator()(const IdleKey& key) const noexcept {
      return hash_of(static_cast<uint64_t>(key.start_ns),
                     pair_of(key.node, (key.device << kIdleKindBits) + static_cast<uint32_t>(key.kind)));
    }
  };
  // Most parts of pauses have the row of the last ones of their node: where that may be. A 16 KB cache stays in reach.
  static constexpr size_t kRecentRows = 4096;
  using RecentRows = std::array<uint32_t, kRecentRows>;

  [[nodiscard]] int64_t bin_of(int64_t time_ns) const { return time_ns & -bin_ns(); }
  [[nodiscard]] IdleRow& row(IdleKey key) {
    key.start_ns = bin_of(key.start_ns);
    const uint32_t kind = static_cast<uint32_t>(key.kind);
    uint32_t& recent = recent_[spread((number_of(key.node) << kIdleKindBits) + kind + key.device) >> 20];
    if (recent >= rows_.all().size() || rows_[recent].key != key) recent = find_or_append(key);
    return rows_.change(recent);
  }
  [[nodiscard]] uint32_t find_or_append(IdleKey key);
  void widen();

  int bin_bits_ = 21;  // a bin is 2^21 ns wide: a steady state of 30 ms has some for itself
  std::unordered_map<IdleKey, uint32_t, KeyHash> index_;
  RecentRows recent_{};
  ChangingRows<IdleRow> rows_;
};

}  // namespace bragg
