// Ending a recording, a phase or a pause while the program goes on: nothing of it is disturbed, and nothing waits for
// ever.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "api/bragg_core.h"
#include "backends/cuda/cuda.h"
#include "check.h"
#include "context/thread_context.h"
#include "recording.h"

namespace {

using bragg::ThreadContext;
using bragg::test::comes_true;
using bragg::test::device;
using bragg::test::in_fake;
using bragg::test::Recording;
using bragg::test::SecondGpu;
using bragg::test::set_kernel_ns;
using bragg::test::set_knob;
namespace cuda = bragg::cuda;
using Clock = std::chrono::steady_clock;

uint64_t flushes() { return in_fake<uint64_t()>("bragg_fake_flushes", "/libcupti.so.13")(); }
constexpr uint64_t kEndlessNs = 1ull << 60;

// Interrupts waits of its scope once the recording has so many kernels: a test need not wait 5 s for what does not
// come, and waits for what does.
class InterruptAt {
 public:
  InterruptAt(const Recording& recording, uint64_t kernels) {
    recording_ = &recording;
    kernels_ = kernels;
    bragg_set_interrupt_look([] { return recording_->count("kernels") >= kernels_ ? 1 : 0; });
  }
  ~InterruptAt() { bragg_set_interrupt_look(nullptr); }
  InterruptAt(const InterruptAt&) = delete;
  InterruptAt& operator=(const InterruptAt&) = delete;

 private:
  static inline const Recording* recording_ = nullptr;
  static inline uint64_t kernels_ = 0;
};

struct Program {
  cuda::Stream stream = (device().use(), device().stream());
  cuda::Function kernel = device().kernel("k");
  void launch() const { device().launch(kernel, stream); }
};

// Whatever is asked of the recorder on another thread meanwhile, and whatever the mode of the capture.
void capture_while(uint32_t mode, const std::function<void()>& control) {
  const Program program;
  program.launch();
  device().must("cuStreamBeginCapture_v2", program.stream, mode);
  program.launch();
  std::thread(control).join();
  program.launch();
  cuda::Graph graph = nullptr;
  const auto result = in_fake<cuda::Result(cuda::Stream, cuda::Graph*)>("cuStreamEndCapture")(program.stream, &graph);
  CHECK(result == cuda::Result::Success);
}

TEST(a_capture_goes_on_while_another_thread_controls_the_recording) {
  for (uint32_t mode = 0; mode < 3; ++mode) {
    Recording recording("capture");
    capture_while(mode, [&] { recording.flush(); });
    capture_while(mode, [&] { recording.advance(); });
    capture_while(mode, [&] {
      recording.deactivate_and_flush();
      recording.activate();
    });
    capture_while(mode, [] { bragg_flush_device_records(); });
    capture_while(mode, [] { const Recording other("another"); });
    recording.flush();
    CHECK_EQ(recording.count("missing_records"), 0);
  }
}

TEST(a_recording_ends_with_all_records_of_work_that_is_still_queued) {
  const Program program;
  Recording recording("queued");
  set_kernel_ns("k", 20'000'000);  // 2 s of the GPU
  for (int i = 0; i < 100; ++i) program.launch();
  recording.deactivate_and_flush();
  set_kernel_ns("k", 0);
  CHECK_EQ(recording.count("kernels"), 100);
  CHECK_EQ(recording.count("missing_records"), 0);
}

TEST(a_kernel_that_does_not_end_is_given_up_and_counted_once) {
  const Program program;
  set_kernel_ns("endless", kEndlessNs);
  Recording recording("endless");
  for (int i = 0; i < 10; ++i) program.launch();
  std::thread([] { device().launch(device().kernel("endless"), Program().stream); }).join();  // in a buffer of its own
  {
    const InterruptAt interrupt(recording, 10);
    recording.flush();
  }
  CHECK_EQ(recording.count("kernels"), 10);
  CHECK_EQ(recording.count("missing_records"), 1);
  const uint64_t before = flushes();
  for (int i = 0; i < 10; ++i) program.launch();
  recording.deactivate_and_flush();  // what was given up is awaited no more
  CHECK(flushes() - before < 50);    // 600 in 5 s
  CHECK_EQ(recording.count("kernels"), 20);
  CHECK_EQ(recording.count("missing_records"), 1);
}

TEST(what_is_complete_beside_a_kernel_that_does_not_end_is_in_the_capture) {
  set_kernel_ns("endless", kEndlessNs);
  Recording recording("beside endless", false, 100'000);
  std::thread([] {
    const Program program;
    for (int i = 0; i < 10; ++i) program.launch();
    device().must("cuStreamSynchronize", program.stream);  // they are complete, however soon the wait is interrupted
    device().launch(device().kernel("endless"), device().stream());
  }).join();
  bragg_set_interrupt_look([] { return 1; });
  CHECK_EQ(recording.stop_and_count_all("kernels"), 10);
  bragg_set_interrupt_look(nullptr);
}

TEST(a_kernel_that_does_not_end_is_given_up_while_the_program_goes_on) {
  set_kernel_ns("endless", kEndlessNs);
  const Recording recording("goes on");
  std::thread([] { device().launch(device().kernel("endless"), Program().stream); }).join();
  std::atomic<bool> stop{false};
  const auto for_ever = Clock::now() + std::chrono::seconds(60);
  std::thread going_on([&] {
    for (const Program program; !stop.load() && Clock::now() < for_ever;
         std::this_thread::sleep_for(std::chrono::milliseconds(1)))
      program.launch();
  });
  recording.flush();
  CHECK(Clock::now() < for_ever);
  stop.store(true);
  going_on.join();
  CHECK_EQ(recording.count("missing_records"), 1);
}

TEST(copies_and_graphs_end_a_recording_without_a_wait_for_what_does_not_come) {
  const Program program;
  Recording recording("copies");
  device().must("cuStreamBeginCapture_v2", program.stream, 0u);
  for (int i = 0; i < 20; ++i) program.launch();
  cuda::Graph graph = nullptr;
  device().must("cuStreamEndCapture", program.stream, &graph);
  cuda::GraphExec exec = nullptr;
  device().must("cuGraphInstantiateWithFlags", &exec, graph, uint64_t{0});
  for (int i = 0; i < 5; ++i) device().must("cuGraphLaunch", exec, program.stream);
  device().must("cuMemsetD8Async", uint64_t{4096}, static_cast<unsigned char>(0), size_t{64}, program.stream);
  recording.deactivate_and_flush();
  CHECK_EQ(recording.count("kernels"), 100);
  CHECK_EQ(recording.count("sets"), 1);
  CHECK_EQ(recording.count("missing_records"), 0);
}

// As on a machine that is busy: a flush takes as long as what may not come is awaited.
TEST(records_that_come_with_a_later_flush_are_awaited_however_long_one_takes) {
  const Program program;
  Recording recording("long flushes");
  set_knob("flush_delay_ms", 350);
  set_knob("waiting_flush_ms", 0);  // the GPU is not done with it when the first flush looks
  static uint64_t second;
  second = flushes() + 2;
  bragg_set_interrupt_look([] {
    if (flushes() >= second) set_knob("waiting_flush_ms", 60'000);
    return 0;
  });
  device().must("cuMemsetD8Async", uint64_t{4096}, static_cast<unsigned char>(0), size_t{1} << 30, program.stream);
  recording.deactivate_and_flush();
  bragg_set_interrupt_look(nullptr);
  set_knob("flush_delay_ms", 0);
  set_knob("waiting_flush_ms", 15);
  CHECK_EQ(recording.count("sets"), 1);
  CHECK_EQ(recording.count("missing_records"), 0);
}

// However long a call of a source takes: it is told later what to collect.
TEST(what_is_switched_on_while_a_flush_takes_long_is_recorded) {
  const Program program;
  const Recording recording("switched on");
  recording.deactivate();
  set_knob("flush_delay_ms", 60'000);
  const uint64_t before = flushes();
  std::thread waiting([&] { recording.flush(); });
  CHECK(comes_true([&] { return flushes() > before; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));  // it does not respond, as far as others know
  recording.activate();
  set_knob("flush_delay_ms", 0);
  waiting.join();
  const bool is_recorded = comes_true([&] {
    program.launch();
    recording.flush();
    return recording.count("kernels") > 0;
  });
  CHECK(is_recorded);
}

TEST(scopes_and_launches_go_on_while_cupti_flushes_for_long) {
  const Program program;
  const Recording recording("slow flush");
  const uint32_t frame = bragg_scope_frame("s", 1);
  set_knob("flush_delay_ms", 60'000);
  CHECK(comes_true([before = flushes()] { return flushes() > before; }));
  constexpr uint64_t kBurst = 10'000;  // fits into the thread's ring
  uint64_t scopes = 0;
  for (int burst = 0; burst < 50 && comes_true([] { return ThreadContext::current().ring.empty(); }); ++burst)
    for (uint64_t i = 0; i < kBurst; ++i, ++scopes) {
      bragg_scope_enter(frame);
      if (scopes % 100 == 0) program.launch();
      bragg_scope_exit();
    }
  CHECK_EQ(scopes, 50 * kBurst);
  set_knob("flush_delay_ms", 0);
  recording.flush();
  CHECK_EQ(recording.count("dropped_events"), 0);
  CHECK_EQ(recording.count("scopes"), scopes);
}

TEST(nothing_is_flushed_in_the_background_while_the_hardware_event_system_is_on) {
  const Program program;
  const Recording recording("hardware trace");
  recording.flush();  // none is under way when the system comes on
  set_knob("hardware_trace", 1);
  CHECK(!bragg::cuda_backend::may_flush_in_background());
  for (int i = 0; i < 10; ++i) program.launch();
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  CHECK_EQ(recording.count("kernels"), 0);
  recording.flush();  // on this thread
  CHECK_EQ(recording.count("kernels"), 10);
  set_knob("hardware_trace", 0);
  CHECK(bragg::cuda_backend::may_flush_in_background());
}

TEST(where_copies_between_gpus_are_recorded_nothing_is_flushed_in_the_background) {
  const Program program;
  const Recording recording("one GPU");
  program.launch();
  CHECK(bragg::cuda_backend::may_flush_in_background());
  uint64_t before = 0;
  {
    const SecondGpu gpu;
    program.launch();
    CHECK(!bragg::cuda_backend::may_flush_in_background());
    before = flushes();
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    CHECK_EQ(flushes(), before);
  }
  recording.flush();  // on this thread
  CHECK(flushes() > before);
  CHECK_EQ(recording.count("kernels"), 2);
}

TEST(many_launching_threads_lose_nothing) {
  constexpr uint32_t kThreads = 96, kLaunches = 200;
  const Recording recording("96 threads");
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i)
    threads.emplace_back([] {
      const Program program;
      for (uint32_t launch = 0; launch < kLaunches; ++launch) program.launch();
    });
  for (auto& thread : threads) thread.join();
  recording.flush();
  CHECK_EQ(recording.count("kernels"), kThreads * kLaunches);
  CHECK_EQ(recording.count("dropped_events"), 0);
  CHECK_EQ(recording.count("dropped_records"), 0);
  CHECK_EQ(recording.count("missing_records"), 0);
}

}  // namespace
