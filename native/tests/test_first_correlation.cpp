// Correlation ids of programs that run for days.
#include "data/first_correlation.h"

#include "check.h"

namespace {

using bragg::CorrelationId;
using bragg::FirstCorrelation;

TEST(launches_in_flight_belong_to_their_phase_however_many_ids_were_used_up) {
  FirstCorrelation first;
  CHECK(!first.is_known());
  first.note(CorrelationId{100});
  first.note(CorrelationId{90});  // of a thread whose ring is read later
  CHECK(first.is_after(CorrelationId{89}) && !first.is_after(CorrelationId{90}));
  constexpr uint64_t step = 1u << 20, two_rounds = uint64_t{1} << 33;
  for (uint64_t id = 100; id < two_rounds; id += step) {
    first.note(static_cast<CorrelationId>(id));
    const auto in_flight = static_cast<CorrelationId>(id > step ? id - step : id);
    if (first.is_after(in_flight)) return bragg::test::fail(__FILE__, __LINE__, std::to_string(id));
  }
}

TEST(a_first_launch_after_a_long_time_of_others_begins_anew) {
  FirstCorrelation first;
  first.note(CorrelationId{100});
  constexpr uint32_t kLater = 100 + (3u << 30);  // others used up the ids between
  first.note(CorrelationId{kLater});
  CHECK(first.is_after(CorrelationId{kLater - 1}));
  CHECK(!first.is_after(CorrelationId{kLater}));
}

}  // namespace
