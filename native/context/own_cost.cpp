#include "context/own_cost.h"

#include <algorithm>

namespace bragg {
namespace {

constexpr int kTries = 32;

// What two readings of the clock take that nothing lies between; once the clock is the one that stays.
uint64_t reading_ns() noexcept {
  static std::atomic<int64_t> known_ns{-1};
  if (const int64_t known = known_ns.load(std::memory_order_relaxed); known >= 0) return static_cast<uint64_t>(known);
  int64_t least_ns = 1'000;
  for (int i = 0; i < kTries; ++i) {
    const int64_t start_ns = now_ns();
    least_ns = std::min(least_ns, now_ns() - start_ns);
  }
  least_ns = std::max<int64_t>(least_ns, 0);
  if (detail::tick_clock.is_ready() || !ticks_are_steady()) known_ns.store(least_ns, std::memory_order_relaxed);
  return static_cast<uint64_t>(least_ns);
}

}  // namespace

void OwnCost::note(CostPart part, int64_t elapsed_ns, uint64_t waits_before) noexcept {
  const bool is_first = random_ == 0;
  if (is_first) random_ = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(this) >> 6) | 1;
  random_ ^= random_ << 13;  // Marsaglia's xorshift32
  random_ ^= random_ >> 17;
  random_ ^= random_ << 5;
  until_timed_ = 1 + random_ % (2 * CostTotals::kMeasureEvery - 1);
  if (is_first) return;  // it stands for no others
  const int64_t waited_ns = static_cast<int64_t>(waits_ns_.load(std::memory_order_relaxed) - waits_before);
  const auto own_ns = static_cast<uint64_t>(std::max<int64_t>(elapsed_ns - waited_ns, 0));
  const uint64_t usual_ns = std::min(own_ns, kLongestNs);
  Part& sums = of(part);
  add(sums.timed, 1);
  add(sums.timed_ns, usual_ns);
  add(sums.rest_ns, own_ns - usual_ns);
  if (apart_ns_ < 0) return;
  add(sums.apart, 1);
  add(sums.apart_ns, std::min(static_cast<uint64_t>(apart_ns_), usual_ns));
}

void OwnCost::add_to(CostTotals& totals) const noexcept {
  totals.waits_ns += waits_ns_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < parts_.size(); ++i) {
    totals.parts[i].timed += parts_[i].timed.load(std::memory_order_relaxed);
    totals.parts[i].timed_ns += parts_[i].timed_ns.load(std::memory_order_relaxed);
    totals.parts[i].rest_ns += parts_[i].rest_ns.load(std::memory_order_relaxed);
    totals.parts[i].apart += parts_[i].apart.load(std::memory_order_relaxed);
    totals.parts[i].apart_ns += parts_[i].apart_ns.load(std::memory_order_relaxed);
  }
}

CostTotals CostTotals::since(const CostTotals& before) const noexcept {
  CostTotals since;
  since.waits_ns = waits_ns - before.waits_ns;
  for (size_t i = 0; i < parts.size(); ++i)
    since.parts[i] = {parts[i].timed - before.parts[i].timed, parts[i].timed_ns - before.parts[i].timed_ns,
                      parts[i].rest_ns - before.parts[i].rest_ns, parts[i].apart - before.parts[i].apart,
                      parts[i].apart_ns - before.parts[i].apart_ns};
  return since;
}

// What was timed apart read the clock twice more.
uint64_t CostTotals::Part::ns() const noexcept {
  return (timed_ns - std::min((timed + 2 * apart) * reading_ns(), timed_ns)) * kMeasureEvery + rest_ns;
}

uint64_t CostTotals::Part::ns_apart() const noexcept {
  return (apart_ns - std::min(apart * reading_ns(), apart_ns)) * kMeasureEvery;
}

}  // namespace bragg
