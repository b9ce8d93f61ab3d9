// Counters that do not go together in one pass.
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/counters/counter_choice.h"
#include "check.h"
#include "recording.h"

namespace {

uint64_t turns_of(const char* counters, std::chrono::milliseconds lasts) {
  bragg::test::Recording recording("turns", {.counters = counters});
  recording.activate();
  bragg::test::device().use();
  bragg::test::device().launch(bragg::test::device().kernel("copy"), bragg::test::device().stream());
  std::this_thread::sleep_for(lasts);
  return recording.stop_and_find({"turns"})[0];
}

TEST(counters_that_are_wrong_beside_each_other_take_turns) {
  uint64_t turns = 0;
  for (std::chrono::milliseconds lasts(1300); turns < 3 && lasts < std::chrono::seconds(30); lasts *= 2)
    turns = turns_of("tensor,l2_hit_rate", lasts);
  CHECK(turns >= 3);
}

TEST(counters_that_go_together_take_no_turns) { CHECK_EQ(turns_of("default", std::chrono::milliseconds(100)), 0u); }

TEST(counters_are_taken_together_as_far_as_they_are_right) {
  std::vector<bragg::Counter> wanted = bragg::counters_of("default,l2");
  const size_t all = wanted.size();
  const auto first = bragg::take_together(wanted);
  CHECK_EQ(first.size() + wanted.size(), all);
  CHECK((bragg::tracks_of(wanted) == std::vector<std::string>{"L2 sectors", "L2 hit rate"}));
  CHECK_EQ(bragg::take_together(wanted).size(), 2u);
  CHECK(wanted.empty());
}

TEST(a_throughput_counts_as_many_metrics_when_it_is_decoded) {
  CHECK_EQ(bragg::decoding_weight(bragg::counters_of("dram")), 2u);
  CHECK_EQ(bragg::decoding_weight(bragg::counters_of("l2_busy,l2_sectors,l2_hit_rate")), 12u);
}

}  // namespace
