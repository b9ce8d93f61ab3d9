// What a thread waited, on a machine that has cores for it and on one that has not.
#include "check.h"
#include "context/waited_time.h"

namespace {

using bragg::waited_time;

constexpr int64_t kMs = 1'000'000;

TEST(time_in_which_a_thread_neither_ran_nor_was_ready_is_waited) {
  CHECK_EQ(waited_time(10 * kMs, 2 * kMs, 0), 8 * kMs);
  CHECK_EQ(waited_time(10 * kMs, 10 * kMs, 0), 0);
}

TEST(a_thread_that_computes_without_a_core_does_not_wait) {
  CHECK_EQ(waited_time(20 * kMs, 5 * kMs, 15 * kMs), 0);
  CHECK_EQ(waited_time(20 * kMs, 5 * kMs, 15 * kMs + 1), 0);  // by clocks that disagree
  CHECK_EQ(waited_time(20 * kMs, 5 * kMs - 40'000, 15 * kMs), 0);
}

TEST(a_thread_that_sleeps_and_finds_no_core_when_it_wakes_up_waits_for_all_of_it) {
  CHECK_EQ(waited_time(21 * kMs, 0, 20 * kMs), 21 * kMs);
  CHECK_EQ(waited_time(20 * kMs, kMs, 16 * kMs), 15 * kMs);  // it ran a quarter of the time that it had
}

}  // namespace
