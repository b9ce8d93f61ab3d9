#include "context/measured_stretches.h"

#include <map>

#include "check.h"

namespace {

using bragg::Interval;
using bragg::MeasuredStretches;
using bragg::NodeId;

constexpr NodeId kForward{1}, kUpdate{2};

std::map<NodeId, int64_t> taken(MeasuredStretches& stretches, Interval whole) {
  std::map<NodeId, int64_t> ns;
  stretches.take(whole, [&](NodeId place, int64_t measured_ns) { ns[place] += measured_ns; });
  return ns;
}

TEST(what_was_measured_is_handed_out_once_by_when_it_ran) {
  MeasuredStretches stretches;
  stretches.add(kForward, {0, 10});
  stretches.add(MeasuredStretches::kElsewhere, {20, 30});
  stretches.add(MeasuredStretches::kElsewhere, {30, 50});
  stretches.add(kUpdate, {60, 65});
  using Ns = std::map<NodeId, int64_t>;
  CHECK(taken(stretches, {0, 40}) == (Ns{{kForward, 10}, {MeasuredStretches::kElsewhere, 20}}));
  CHECK(taken(stretches, {40, 100}) == (Ns{{MeasuredStretches::kElsewhere, 10}, {kUpdate, 5}}));
  CHECK(taken(stretches, {0, 100}).empty());
}

TEST(what_was_measured_before_a_sample_began_is_forgotten) {
  MeasuredStretches stretches;
  stretches.add(kForward, {0, 10});
  stretches.add(kUpdate, {10, 20});
  CHECK(taken(stretches, {15, 30}) == (std::map<NodeId, int64_t>{{kUpdate, 5}}));
}

TEST(beyond_the_most_stretches_places_that_are_known_still_get_their_time_and_what_is_elsewhere_too) {
  MeasuredStretches stretches;
  const auto n = static_cast<int64_t>(MeasuredStretches::kMax);
  for (int64_t i = 0; i < 2 * n; ++i) stretches.add(NodeId{static_cast<uint32_t>(i + 1)}, {i, i + 1});
  stretches.add(MeasuredStretches::kElsewhere, {2 * n, 2 * n + 7});
  stretches.add(kForward, {2 * n + 7, 2 * n + 9});
  const auto ns = taken(stretches, {0, 3 * n});
  CHECK_EQ(ns.size(), MeasuredStretches::kMax);
  CHECK_EQ(ns.at(MeasuredStretches::kElsewhere), 7);
  CHECK_EQ(ns.at(kForward), 3);
}

TEST(places_whose_numbers_fall_together_take_no_more_room_than_there_is) {
  MeasuredStretches stretches;
  const auto n = static_cast<int64_t>(MeasuredStretches::kMax);
  stretches.add(MeasuredStretches::kElsewhere, {0, 1});
  for (int64_t i = 1; i < n; ++i) stretches.add(NodeId{static_cast<uint32_t>(n * i - 1)}, {i, i + 1});
  (void)taken(stretches, {0, 0});
  for (int64_t i = n; i < 2 * n; ++i) stretches.add(MeasuredStretches::kElsewhere, {i, i + 1});
  const auto ns = taken(stretches, {0, 2 * n});
  CHECK_EQ(ns.size(), MeasuredStretches::kMax - 1);
  CHECK(ns.at(MeasuredStretches::kElsewhere) >= 1);
}

}  // namespace
