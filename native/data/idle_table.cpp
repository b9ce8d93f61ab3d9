#include "data/idle_table.h"

#include <algorithm>
#include <utility>

namespace bragg {
namespace {

constexpr int64_t kMostBinsAtOnce = 4096;
constexpr int kWidestBits = 50;  // 13 days

}  // namespace

uint32_t IdleTable::find_or_append(IdleKey key) {
  if (const auto found = index_.find(key); found != index_.end()) return found->second;
  if (rows_.all().size() >= kMaxRows) {
    while (rows_.all().size() > kMaxRows / 2 && bin_bits_ < kWidestBits) widen();
    if (rows_.all().size() >= kMaxRows) key.node = kRootNode;  // more paths than rows
    key.start_ns = bin_of(key.start_ns);
  }
  const auto [found, is_new] = index_.try_emplace(key, kNone);
  if (is_new) found->second = rows_.append({key});
  return found->second;
}

void IdleTable::add(uint32_t device, IdleKind kind, NodeId node, int64_t start_ns, int64_t end_ns) {
  while ((end_ns - start_ns) >> bin_bits_ > kMostBinsAtOnce && bin_bits_ < kWidestBits) widen();
  while (start_ns < end_ns) {
    IdleRow& found = row({start_ns, node, device, kind});  // bins may become wider
    const int64_t until_ns = std::min(end_ns, bin_of(start_ns) + bin_ns());
    found.idle_ns += static_cast<uint64_t>(until_ns - start_ns);
    start_ns = until_ns;
  }
}

void IdleTable::note_pause(uint32_t device, IdleKind kind, NodeId node, int64_t end_ns, int64_t part_ns,
                           bool is_largest) {
  IdleRow& found = row({end_ns - 1, node, device, kind});
  found.count += is_largest;
  found.longest_ns = std::max(found.longest_ns, static_cast<uint64_t>(part_ns));
}

void IdleTable::widen() {
  ++bin_bits_;
  const std::vector<IdleRow> before = std::exchange(rows_, {}).all();
  index_.clear();
  for (const IdleRow& old : before) {
    IdleKey key = old.key;
    key.start_ns = bin_of(key.start_ns);
    const auto [found, is_new] = index_.try_emplace(key, kNone);
    if (is_new) found->second = rows_.append({key});
    IdleRow& wider = rows_.change(found->second);
    wider.count += old.count;
    wider.idle_ns += old.idle_ns;
    wider.longest_ns = std::max(wider.longest_ns, old.longest_ns);
  }
}

}  // namespace bragg
