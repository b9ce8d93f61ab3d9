// Steps of programs that JAX compiled.
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "check.h"
#include "data/call_steps.h"
#include "data/durations.h"

namespace {

using bragg::CallSteps;
using bragg::duration_bucket;

constexpr int64_t kDay = 1'795'404'889'000'000'000;

TEST(a_step_lasts_from_the_end_of_a_call_to_the_end_of_the_next) {
  CallSteps steps;
  for (const auto& [began_ns, ended_ns] : {std::pair{1000, 1500}, {1600, 1610}, {1700, 1730}})
    steps.function("jit(step)").add(began_ns, ended_ns, kDay + ended_ns);
  steps.function("jit(init)").add(1, 11, kDay);
  const CallSteps::Function& step = steps.function("jit(step)");
  CHECK_EQ(step.count, 3u);
  CHECK_EQ(step.total_ns, 730);
  CHECK_EQ(step.called_ns - step.longest_ns, 40);
  CHECK(step.buckets == (std::map<uint32_t, uint64_t>{
                            {duration_bucket(110), 1}, {duration_bucket(120), 1}, {duration_bucket(500), 1}}));
  CHECK_EQ(step.began_at_ns, kDay + 1000);
  CHECK_EQ(step.last_at_ns, kDay + 1730);
  CHECK(step.ends_after_ns == (std::vector<int64_t>{500, 610, 730}));
  CHECK_EQ(steps.functions().size(), 2u);
}

TEST(what_lies_between_two_recordings_is_not_a_step) {
  CallSteps steps;
  for (int recording = 0; recording < 2; ++recording) {
    steps.begin();
    steps.function("jit(step)").add(5000, 5010, kDay);
    steps.function("jit(step)").add(5020, 5030, kDay);
    steps.begin();
    steps.function("jit(step)").add(9000, 9010, kDay);
  }
  CHECK_EQ(steps.function("jit(step)").total_ns, 2 * (30 + 10));
}

TEST(first_calls_do_not_go_back_with_the_clock_and_are_64_at_most) {
  CallSteps steps;
  CallSteps::Function& step = steps.function("jit(step)");
  for (int64_t call = 0; call < 100; ++call)
    step.add(100 * call, 100 * call + 7, kDay + (call == 1 ? -500 : 10 * call));
  CHECK_EQ(step.ends_after_ns.size(), CallSteps::kMaxFirst);
  CHECK_EQ(step.ends_after_ns[0], 7);
  CHECK_EQ(step.ends_after_ns[1], 7);
  CHECK_EQ(step.ends_after_ns[2], 27);
  CHECK_EQ(step.last_at_ns, kDay + 990);
}

}  // namespace
