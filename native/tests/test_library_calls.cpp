// Patience with calls of a library that may hang, and with threads that get no core.
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "backends/library_calls.h"
#include "check.h"

namespace {

using bragg::CallLook;
using bragg::CallPatience;
using bragg::LibraryCalls;
using std::chrono::milliseconds;

constexpr int64_t kMs = 1'000'000;
constexpr milliseconds kSince{20};
constexpr CallLook kOutside{.call = 2}, kAsleepWithin{.call = 3};
constexpr CallLook within_after(int64_t cpu_ns, uint64_t call = 3) { return {call, true, cpu_ns}; }

TEST(a_call_that_sleeps_uses_up_patience) {
  CallPatience patience(milliseconds(40), kOutside);
  CHECK(!patience.is_over(kAsleepWithin, kSince));  // it has begun meanwhile
  CHECK(!patience.is_over(kAsleepWithin, kSince));
  CHECK(patience.is_over(kAsleepWithin, kSince));
}

TEST(a_thread_that_waits_for_a_core_uses_up_no_patience) {
  CallPatience patience(milliseconds(40), within_after(0));
  for (int look = 0; look < 100; ++look) CHECK(!patience.is_over(within_after(5 * kMs), kSince));
  CHECK(!patience.is_over(within_after(39 * kMs), kSince));
  CHECK(patience.is_over(within_after(40 * kMs), kSince));  // that it had
}

TEST(a_thread_outside_of_the_library_uses_up_no_patience) {
  CallPatience patience(milliseconds(40), kOutside);
  for (int look = 0; look < 100; ++look) CHECK(!patience.is_over(kOutside, kSince));
}

TEST(each_call_has_its_own_patience) {
  CallPatience patience(milliseconds(40), kOutside);
  for (uint64_t call = 3; call < 100; call += 2)
    for (int look = 0; look < 2; ++look) CHECK(!patience.is_over({.call = call}, kSince));
}

TEST(a_thread_is_found_asleep_within_its_library_and_busy_outside) {
  LibraryCalls calls;
  std::atomic<bool> must_return{false}, must_end{false};
  std::thread thread([&] {
    calls.note_thread();
    calls.within([&] { must_return.wait(false); });
    while (!must_end) sched_yield();
  });
  CHECK(bragg::test::comes_true([&] { return calls.look().call == 1 && !calls.look().is_runnable; }));
  must_return = true;
  must_return.notify_all();
  CHECK(bragg::test::comes_true([&] { return calls.look().call == 2 && calls.look().is_runnable; }));
  const int64_t before_ns = calls.look().cpu_ns;
  CHECK(bragg::test::comes_true([&] { return calls.look().cpu_ns > before_ns; }));
  must_end = true;
  thread.join();
}

}  // namespace
