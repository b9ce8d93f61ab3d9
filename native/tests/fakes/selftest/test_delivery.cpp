// When buffers are asked for and come back.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "selftest/profiler.h"
#include "selftest/program.h"
#include "selftest/scenario.h"

namespace bragg::fake::selftest {
namespace {

constexpr size_t kKernelBytes = 216;  // of 13.0

// Waits for CUPTI's own thread.
bool becomes_true(bool (*condition)()) {
  for (int i = 0; i < 2000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
}

}  // namespace

SCENARIO(full_buffers_come_on_a_thread_of_cupti) {
  const Program program;
  Profiler profiler;
  Profiler::set_policy({.size_bytes = 10 * kKernelBytes});
  profiler.start({cupti::Kind::ConcurrentKernel});
  const cuda::Function kernel = program.function("k");
  for (int i = 0; i < 25; ++i) program.launch(kernel);
  program.synchronize();
  CHECK(becomes_true([] { return Profiler::records().size() == 20; }));  // two full ones; 5 records wait
  for (const pid_t thread : Profiler::delivering_threads()) CHECK(thread != gettid());
  for (const pid_t thread : Profiler::requesting_threads()) CHECK_EQ(thread, gettid());
  profiler.flush();
  CHECK_EQ(Profiler::records().size(), 25);
}

SCENARIO(full_buffers_with_unfinished_work_wait) {
  const Program program;
  Profiler profiler;
  Profiler::set_policy({.size_bytes = 2 * kKernelBytes});
  profiler.start({cupti::Kind::ConcurrentKernel});
  const cuda::Stream one = program.stream(), two = program.stream();
  program.launch(program.function("long", 1'000'000'000), one);
  program.launch(program.function("short", 10), two);  // fills the buffer of "long"
  for (int i = 0; i < 4; ++i) program.launch(program.function("short", 10), two);
  program.must("cuStreamSynchronize", two);
  CHECK(becomes_true([] { return Profiler::records().size() == 2; }));
  for (const SeenRecord& record : Profiler::records()) CHECK_EQ(record.name, "short");
  program.synchronize();
  CHECK(becomes_true([] { return Profiler::records().size() == 4; }));
}

SCENARIO(flush_leaves_a_buffer_with_unfinished_work) {
  const Program program;
  Profiler profiler;
  profiler.start({cupti::Kind::ConcurrentKernel});
  program.launch(program.function("k", 1'000'000'000));
  profiler.flush();
  CHECK(Profiler::records().empty());
  program.synchronize();
  profiler.flush();
  CHECK_EQ(Profiler::records().size(), 1);
  profiler.flush();
  CHECK_EQ(Profiler::records().size(), 1);
}

SCENARIO_FOR(forced_flush_takes_unfinished_work_without_its_end, "12.8", "13.0") {
  const Program program;
  Profiler profiler;
  profiler.start({cupti::Kind::ConcurrentKernel, cupti::Kind::Memcpy});
  program.launch(program.function("done", 10));
  program.synchronize();
  program.launch(program.function("unfinished", 1'000'000'000));
  program.copy_to_device(64, nullptr);
  profiler.flush(cupti::kFlushForced);
  const auto records = Profiler::records();
  REQUIRE(records.size() == 3);
  CHECK(records[0].end_ns != 0);
  CHECK_EQ(records[1].end_ns, 0);
  CHECK(records[1].start_ns != 0);
  CHECK_EQ(records[2].end_ns, 0);
  program.synchronize();
  profiler.flush();
  CHECK_EQ(Profiler::records().size(), 3);  // they are not delivered again
}

static size_t buffers_of_two_threads() {
  const Program program;
  Profiler profiler;
  profiler.start({cupti::Kind::ConcurrentKernel});
  program.launch(program.function("k"));
  std::thread([&] {
    (void)program.use_device(0);
    program.launch(program.function("k"));
    program.synchronize();
  }).join();
  program.synchronize();
  profiler.flush();
  CHECK_EQ(Profiler::records().size(), 2);
  const auto requesting = Profiler::requesting_threads();
  CHECK_EQ(std::set<pid_t>(requesting.begin(), requesting.end()).size(), requesting.size());
  return requesting.size();
}

SCENARIO(each_thread_has_a_buffer_from_13_0, {"CUPTI_VERSION", "13.0"}) { CHECK_EQ(buffers_of_two_threads(), 2); }

SCENARIO(threads_share_a_buffer_before_13_0, {"CUPTI_VERSION", "12.9"}) { CHECK_EQ(buffers_of_two_threads(), 1); }

SCENARIO(flush_can_deliver_on_the_caller, {"FLUSH_ON_CALLER", "1"}) {
  const Program program;
  Profiler profiler;
  profiler.start({cupti::Kind::ConcurrentKernel});
  program.launch(program.function("k"));
  program.synchronize();
  profiler.flush();
  CHECK(Profiler::delivering_threads() == std::vector<pid_t>{gettid()});
}

SCENARIO(flush_can_be_slow, {"FLUSH_DELAY_MS", "50"}) {
  const Program program;
  Profiler profiler;
  profiler.start({cupti::Kind::ConcurrentKernel});
  const auto before = std::chrono::steady_clock::now();
  profiler.flush();
  CHECK(std::chrono::steady_clock::now() - before >= std::chrono::milliseconds(50));
}

SCENARIO(flush_needs_registered_buffers) {
  const Program program;
  const Profiler profiler;
  CHECK_EQ(profiler.call<cupti::CuptiActivityFlushAll>("cuptiActivityFlushAll", 0u), cupti::Result::InvalidOperation);
}

SCENARIO(buffers_hold_as_many_records_as_the_tool_allows) {
  const Program program;
  Profiler profiler;
  Profiler::set_policy({.max_records = 3});
  profiler.start({cupti::Kind::ConcurrentKernel});
  for (int i = 0; i < 7; ++i) program.launch(program.function("k"));
  program.synchronize();
  profiler.flush();
  const auto records = Profiler::records();
  REQUIRE(records.size() == 7);
  for (size_t i = 0; i < records.size(); ++i) CHECK_EQ(records[i].buffer, i / 3);
}

SCENARIO_FOR(records_without_a_buffer_are_dropped_and_counted, "12.9", "13.0") {
  const Program program;
  Profiler profiler;
  Profiler::set_policy({.refuse = true});
  profiler.start({cupti::Kind::ConcurrentKernel});
  for (int i = 0; i < 5; ++i) program.launch(program.function("k"));
  program.synchronize();
  profiler.flush();
  CHECK(Profiler::records().empty());
  CHECK_EQ(profiler.dropped(), 5);
  CHECK_EQ(profiler.dropped(), 0);  // counted since the last time
}

SCENARIO(buffers_that_are_too_small_go_back_empty) {
  const Program program;
  Profiler profiler;
  Profiler::set_policy({.size_bytes = kKernelBytes - 8});
  profiler.start({cupti::Kind::ConcurrentKernel});
  for (int i = 0; i < 3; ++i) program.launch(program.function("k"));
  program.synchronize();
  profiler.flush();
  CHECK(Profiler::records().empty());
  CHECK_EQ(profiler.dropped(), 3);
  CHECK_EQ(Profiler::delivering_threads().size(), 2);  // the third waits for the next record
}

SCENARIO(null_buffer_crashes_before_12_9, {"CUPTI_VERSION", "12.8"}, {"COMPLETION_ORDER", "0"}) {
  const pid_t child = fork();
  if (child == 0) {
    const Program program;
    Profiler profiler;
    Profiler::set_policy({.refuse = true});
    profiler.start({cupti::Kind::ConcurrentKernel});
    program.launch(program.function("k"));
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

SCENARIO(records_can_come_after_unsubscribing, {"LATE_MS", "300"}) {
  const Program program;
  Profiler profiler;
  profiler.start({cupti::Kind::ConcurrentKernel});
  program.launch(program.function("k"));
  program.synchronize();
  CHECK_EQ(profiler.call<cupti::CuptiUnsubscribe>("cuptiUnsubscribe", profiler.subscriber), Profiler::kOk);
  CHECK(Profiler::records().empty());
  CHECK(becomes_true([] { return Profiler::records().size() == 1; }));
}

SCENARIO(full_buffers_come_under_a_real_clock, {"CLOCK", "real"}) {
  const Program program;
  Profiler profiler;
  Profiler::set_policy({.size_bytes = 2 * kKernelBytes});
  profiler.start({cupti::Kind::ConcurrentKernel});
  const cuda::Function kernel = program.function("k", 200'000'000);
  for (int i = 0; i < 3; ++i) program.launch(kernel);
  CHECK(Profiler::records().empty());
  CHECK(becomes_true([] { return Profiler::records().size() == 2; }));  // no further call is needed
}

}  // namespace bragg::fake::selftest
