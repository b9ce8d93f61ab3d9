// Each fault knob does what it says.
#include <algorithm>

#include "selftest/profiler.h"
#include "selftest/program.h"
#include "selftest/scenario.h"

namespace bragg::fake::selftest {
namespace {

// The records of ten kernels that last 1000 ns each.
std::vector<SeenRecord> ten_kernels(Profiler& profiler) {
  const Program program;
  profiler.start({cupti::Kind::ConcurrentKernel});
  const cuda::Function kernel = program.function("k", 1000);
  for (int i = 0; i < 10; ++i) program.launch(kernel);
  program.synchronize();
  profiler.flush();
  return Profiler::records();
}

template <class Predicate>
std::vector<size_t> places(const std::vector<SeenRecord>& records, Predicate predicate) {
  std::vector<size_t> found;
  for (size_t i = 0; i < records.size(); ++i)
    if (predicate(records[i])) found.push_back(i);
  return found;
}

const std::vector<size_t> kEveryThird{2, 5, 8};

}  // namespace

SCENARIO(records_are_dropped, {"DROP_EVERY", "3"}) {
  Profiler profiler;
  CHECK_EQ(ten_kernels(profiler).size(), 7);
  CHECK_EQ(profiler.dropped(), 3);
}

SCENARIO(records_are_duplicated, {"DUPLICATE_EVERY", "3"}) {
  Profiler profiler;
  const auto records = ten_kernels(profiler);
  REQUIRE(records.size() == 13);
  CHECK_EQ(records[2].correlation, records[3].correlation);
}

SCENARIO(records_change_places, {"REORDER_EVERY", "3"}) {
  Profiler profiler;
  const auto records = ten_kernels(profiler);
  REQUIRE(records.size() == 10);
  CHECK_EQ(records[2].correlation, records[3].correlation + 1);
  CHECK_EQ(records[0].correlation + 1, records[1].correlation);
}

SCENARIO(correlations_are_missing, {"ZERO_CORRELATION_EVERY", "3"}) {
  Profiler profiler;
  CHECK(places(ten_kernels(profiler), [](const SeenRecord& record) { return record.correlation == 0; }) == kEveryThird);
}

SCENARIO(timestamps_are_zero, {"ZERO_TIMESTAMPS_EVERY", "3"}) {
  Profiler profiler;
  CHECK(places(ten_kernels(profiler),
               [](const SeenRecord& record) { return record.start_ns == 0 && record.end_ns == 0; }) == kEveryThird);
}

SCENARIO(ends_are_unknown, {"UNKNOWN_END_EVERY", "3"}) {
  Profiler profiler;
  CHECK(places(ten_kernels(profiler),
               [](const SeenRecord& record) { return record.start_ns != 0 && record.end_ns == 0; }) == kEveryThird);
}

SCENARIO(ends_lie_before_starts, {"END_BEFORE_START_EVERY", "3"}) {
  Profiler profiler;
  CHECK(places(ten_kernels(profiler), [](const SeenRecord& record) { return record.end_ns < record.start_ns; }) ==
        kEveryThird);
}

SCENARIO(knobs_can_be_turned_while_the_program_runs) {
  const Program program;
  Profiler profiler;
  profiler.start({cupti::Kind::ConcurrentKernel});
  const cuda::Function kernel = program.function("k");
  program.launch(kernel);
  program.set_knob("drop_every", 1);
  program.launch(kernel);
  program.set_knob("drop_every", 0);
  program.launch(kernel);
  program.synchronize();
  profiler.flush();
  CHECK_EQ(Profiler::records().size(), 2);
  CHECK_EQ(profiler.dropped(), 1);
}

}  // namespace bragg::fake::selftest
