// The recorder on the fake driver and the fake CUPTI: launching threads, driver callbacks, the consumer and control
// calls at the same time. Meant for ThreadSanitizer and AddressSanitizer as much as for the counts.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/bragg_core.h"
#include "backends/cuda/cuda.h"
#include "check.h"
#include "context/thread_context.h"
#include "recording.h"
#include "scratch.h"

namespace {

using bragg::ThreadContext;
using bragg::test::comes_true;
using bragg::test::device;
using bragg::test::Launchers;
using bragg::test::Recording;
namespace cuda = bragg::cuda;

// Launches in a scope, `launches` times or until told to stop.
void launch_in_scope(const char* name, uint32_t launches, const std::atomic<bool>& stop) {
  device().use();
  const cuda::Stream stream = device().stream();
  const cuda::Function kernel = device().kernel("k");
  const std::string text = name;
  const uint32_t frame = bragg_scope_frame(text.data(), static_cast<uint32_t>(text.size()));
  for (uint32_t i = 0; i < launches && !stop.load(std::memory_order_relaxed); ++i) {
    bragg_scope_enter(frame);
    device().launch(kernel, stream);
    bragg_scope_exit();
  }
}

constexpr uint32_t kThreads = 4;
constexpr uint32_t kLaunches = 5000;

TEST(every_launch_of_every_thread_is_joined_with_its_kernel) {
  const Recording recording("threads");
  const std::atomic<bool> never{false};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back(launch_in_scope, "work", kLaunches, std::cref(never));
  for (auto& thread : threads) thread.join();
  recording.flush();
  CHECK_EQ(recording.count("launches"), kThreads * kLaunches);
  CHECK_EQ(recording.count("kernels"), kThreads * kLaunches);
  CHECK_EQ(recording.count("scopes"), kThreads * kLaunches);
  CHECK_EQ(recording.count("unattributed_records"), 0);
  CHECK_EQ(recording.count("dropped_events"), 0);
  CHECK_EQ(recording.count("dropped_records"), 0);
}

TEST(a_trace_keeps_up_with_threads_that_launch_at_once) {
  const Recording recording("trace", true);
  const std::atomic<bool> never{false};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back(launch_in_scope, "work", kLaunches, std::cref(never));
  for (auto& thread : threads) thread.join();
  recording.flush();
  CHECK_EQ(recording.count("kernels"), kThreads * kLaunches);
  CHECK_EQ(recording.count("dropped_events"), 0);
}

TEST(phases_have_every_launch_once_while_threads_launch) {
  Recording recording("phases");
  const Recording other("beside");
  const std::atomic<bool> never{false};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back(launch_in_scope, "work", kLaunches, std::cref(never));
  for (int phase = 0; phase < 100; ++phase) recording.advance();
  for (auto& thread : threads) thread.join();
  recording.flush();
  for (const char* statistic : {"launches", "kernels", "scopes"}) {
    CHECK_EQ(recording.count_of_ended(statistic) + recording.count(statistic), kThreads * kLaunches);
    CHECK_EQ(other.count(statistic), kThreads * kLaunches);
  }
  CHECK_EQ(recording.count_of_ended("unattributed_records") + recording.count("unattributed_records"), 0);
  CHECK_EQ(other.count("unattributed_records"), 0);
}

TEST(phases_that_follow_by_themselves_have_every_launch_once) {
  Recording recording("rotating", false, 20);
  const std::atomic<bool> never{false};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int part = 0; part < 5; ++part) {  // each fits into the thread's ring
        launch_in_scope("work", kLaunches, never);
        CHECK(comes_true([] { return ThreadContext::current().ring.empty(); }));
      }
    });
  for (auto& thread : threads) thread.join();
  recording.wait_for_phase(4);
  CHECK_EQ(recording.stop_and_count_all("kernels"), kThreads * 5 * kLaunches);
}

TEST(sessions_come_and_go_while_threads_launch) {
  const std::atomic<bool> never{false};
  Launchers launchers(2, [&] { launch_in_scope("work", 100, never); });
  for (int round = 0; round < 10; ++round) {
    launchers.go_on(20);
    const Recording outer("outer");
    launchers.go_on(20);
    const Recording inner("inner", true);
    outer.deactivate();
    (void)inner.count("kernels");
    launchers.go_on(20);
    outer.activate();
    inner.flush();
    CHECK_EQ(inner.count("dropped_records"), 0);
    CHECK_EQ(inner.count("dropped_events"), 0);
  }
}

TEST(a_session_counts_what_ran_while_it_was_active) {
  const Recording recording("active");
  const std::atomic<bool> never{false};
  launch_in_scope("on", 100, never);
  recording.deactivate();
  launch_in_scope("off", 100, never);
  recording.activate();
  launch_in_scope("on", 50, never);
  recording.flush();
  CHECK_EQ(recording.count("launches"), 150);
  CHECK_EQ(recording.count("kernels"), 150);
  CHECK_EQ(recording.count("scopes"), 150);
}

TEST(threads_that_end_leave_their_events) {
  const Recording recording("ending");
  const std::atomic<bool> never{false};
  for (int i = 0; i < 50; ++i) std::thread(launch_in_scope, "short", 20u, std::cref(never)).join();
  recording.flush();
  CHECK_EQ(recording.count("kernels"), 1000);
  CHECK_EQ(recording.count("scopes"), 1000);
}

TEST(a_seventeenth_session_is_refused_with_a_reason) {
  std::vector<std::unique_ptr<Recording>> recordings;
  for (int i = 0; i < 16; ++i) recordings.push_back(std::make_unique<Recording>(("many" + std::to_string(i)).c_str()));
  bragg_session_options options{};
  const bragg::test::ScratchDirectory directory;
  const std::string path = directory.file("x.part");
  options.part_path = path.c_str();
  options.meta_json = "{}";
  options.cupti_candidates = "";
  int os_error = 0;
  char reason[256] = "";
  CHECK_EQ(bragg_session_start(&options, &os_error, reason, sizeof reason), -1);
  CHECK(std::string(reason).find("16 sessions") != std::string::npos);
}

TEST(a_capture_that_cannot_be_created_is_told_by_its_errno) {
  bragg_session_options options{};
  options.part_path = "/nonexistent-directory/x.part";
  options.meta_json = "{}";
  options.cupti_candidates = "";
  options.backend = BRAGG_CPU;
  int os_error = 0;
  char reason[256] = "";
  CHECK_EQ(bragg_session_start(&options, &os_error, reason, sizeof reason), -1);
  CHECK_EQ(os_error, ENOENT);
}

bool is_known(cuda::Context context) {
  const auto known = bragg::cuda_backend::contexts();
  return std::ranges::find(known, context, &bragg::cuda_backend::KnownContext::handle) != known.end();
}

TEST(a_context_is_known_from_a_launch_in_it_to_its_end) {
  cuda::Context context = nullptr;
  {
    const Recording recording("contexts");
    device().must("cuCtxCreate_v2", &context, 0u, 0);
    const cuda::Function kernel = device().kernel("k");
    device().launch(kernel, nullptr);
    CHECK(is_known(context));
    device().must("cuCtxDestroy_v2", context);
    CHECK(!is_known(context));
    device().must("cuCtxSetCurrent", context);  // a new one: the driver gives handles again
    device().launch(kernel, nullptr);
    CHECK(is_known(context));
  }
  CHECK(!is_known(context));  // it may end while nobody tells of it
  device().use();
}

TEST(a_thread_that_launches_in_several_contexts_in_turn_asks_the_driver_for_none_of_them_again) {
  const Recording recording("in turn");
  const cuda::Function kernel = device().kernel("k");
  const auto launch_on = [&](int32_t ordinal) {
    device().use(ordinal);
    device().launch(kernel, nullptr);
    return bragg::ThreadContext::current().device_contexts[0].device;
  };
  for (int turn = 0; turn < 2; ++turn)  // what is known is looked at again after a context has begun
    for (int32_t ordinal = 0; ordinal < 2; ++ordinal) CHECK_EQ(launch_on(ordinal), ordinal);
  bragg::test::fail_calls("cuCtxGetDevice", 999);
  for (int turn = 0; turn < 10; ++turn)
    for (int32_t ordinal = 0; ordinal < 2; ++ordinal) CHECK_EQ(launch_on(ordinal), ordinal);
  bragg::test::fail_calls("cuCtxGetDevice", 0);
  for (int turn = 0; turn < 12; ++turn) device().must("cuDevicePrimaryCtxRelease_v2", 1);
  device().use();
}

}  // namespace
