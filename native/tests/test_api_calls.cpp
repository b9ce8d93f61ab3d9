// Calls of the CUDA runtime and driver as nodes: which call counts, how long it took, and what runs below it.
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/driver/api_names.h"
#include "check.h"
#include "context/thread_context.h"
#include "data/copy_waits.h"
#include "recording.h"

namespace {

using bragg::CorrelationId;
using bragg::Event;
using bragg::test::device;
using bragg::test::Launchers;
using bragg::test::Recording;
namespace cuda = bragg::cuda;
namespace cupti = bragg::cupti;

TEST(names_of_calls_lose_what_the_program_does_not_write) {
  CHECK_EQ(cupti::api_name("cudaMemcpyAsync_ptsz_v7000"), std::string_view("cudaMemcpyAsync"));
  CHECK_EQ(cupti::api_name("cuMemcpyDtoH_v2_ptds"), std::string_view("cuMemcpyDtoH"));
  CHECK_EQ(cupti::api_name("cudaSignalExternalSemaphoresAsync_v2_ptsz_v11020"),
           std::string_view("cudaSignalExternalSemaphoresAsync"));
  CHECK_EQ(cupti::api_name("__cudaLaunchKernel_v13000"), std::string_view("cudaLaunchKernel"));
  CHECK_EQ(cupti::api_name("cuLaunchKernel"), std::string_view("cuLaunchKernel"));
  CHECK_EQ(cupti::api_name("cuGLMapBuffer_vx"), std::string_view("cuGLMapBuffer_vx"));
}

TEST(calls_that_wait_are_known_by_their_names) {
  for (const char* name : {"cuCtxSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaFree", "cuMemFree",
                           "cudaMemcpy", "cudaMemcpy2DToArray", "cuMemcpyDtoH"})
    CHECK_EQ(cupti::waiting(name), bragg::Waiting::Yes);
  for (const char* name : {"cudaMemcpyAsync", "cuMemcpyDtoHAsync", "cudaMemcpy2DAsync"})
    CHECK_EQ(cupti::waiting(name), bragg::Waiting::Copies);
  for (const char* name : {"cudaFreeAsync", "cuMemcpyDtoD", "cuMemcpyDtoDAsync", "cudaStreamWaitEvent", "cudaMalloc"})
    CHECK_EQ(cupti::waiting(name), bragg::Waiting::No);
}

Event call_of_copy(uint32_t correlation) {
  Event call{};
  call.correlation = CorrelationId{correlation};
  return call;
}

TEST(a_copy_and_its_call_are_joined_in_either_order) {
  bragg::CopyWaits waits;
  CHECK(!waits.note_call(call_of_copy(1)).has_value());
  CHECK(!waits.note_record(CorrelationId{2}, true).has_value());
  CHECK(!waits.note_record(CorrelationId{3}, false).has_value());
  CHECK_EQ(waits.note_record(CorrelationId{1}, true).value_or(Event{}).correlation, CorrelationId{1});
  CHECK_EQ(waits.note_call(call_of_copy(2)).value_or(Event{}).correlation, CorrelationId{2});
  CHECK(!waits.note_call(call_of_copy(3)).has_value());           // it did not wait
  CHECK(!waits.note_record(CorrelationId{1}, true).has_value());  // it is counted once
}

TEST(copies_without_a_call_take_no_memory_for_ever) {
  bragg::CopyWaits waits;
  for (uint32_t i = 1; i <= 1u << 14; ++i) (void)waits.note_record(CorrelationId{i}, true);
  CHECK(waits.note_call(call_of_copy(7)).has_value());
  for (uint32_t i = 1u << 20; i <= (1u << 20) + (1u << 15); ++i) (void)waits.note_record(CorrelationId{i}, true);
  CHECK(!waits.note_call(call_of_copy(8)).has_value());
  CHECK_EQ(waits.forgotten(), 0);  // calls that nobody follows are not loss
}

TEST(calls_that_wait_long_for_their_record_are_forgotten_one_by_one_and_counted) {
  bragg::CopyWaits waits;
  constexpr uint32_t generation = 1u << 14;
  for (uint32_t i = 1; i <= 2 * generation; ++i) (void)waits.note_call(call_of_copy(i));
  CHECK_EQ(waits.forgotten(), 0);
  CHECK_EQ(waits.note_record(CorrelationId{1}, true).value_or(Event{}).correlation, CorrelationId{1});
  (void)waits.note_call(call_of_copy(2 * generation + 1));
  CHECK_EQ(waits.forgotten(), generation - 1);
  CHECK(!waits.note_record(CorrelationId{2}, true).has_value());
  CHECK(waits.note_record(CorrelationId{generation + 1}, true).has_value());  // recent ones stay
}

TEST(calls_that_only_ask_are_known_by_their_names) {
  for (const char* name : {"cudaGetDevice", "cudaPeekAtLastError", "cudaEventQuery", "cudaStreamIsCapturing",
                           "cuCtxSetCurrent", "cudaPushCallConfiguration"})
    CHECK(cupti::only_asks(name));
  for (const char* name : {"cudaMalloc", "cuLaunchKernel", "cudaEventRecord", "cudaStreamSynchronize"})
    CHECK(!cupti::only_asks(name));
}

void launch_by_runtime(cuda::Function kernel, cuda::Stream stream) {
  struct Dimensions {
    uint32_t x, y, z;
  };
  const Dimensions one{1, 1, 1};
  device().must("cudaLaunchKernel", kernel, one, one, static_cast<void**>(nullptr), size_t{0}, stream);
}

void launch_and_wait(uint32_t rounds) {
  device().use();
  const cuda::Stream stream = device().stream();
  const cuda::Function kernel = device().kernel("k");
  for (uint32_t i = 0; i < rounds; ++i) {
    launch_by_runtime(kernel, stream);
    device().must("cudaStreamSynchronize", stream);
  }
}

TEST(a_thread_is_in_its_call_until_that_ends_or_calls_are_not_followed_any_more) {
  auto& thread = bragg::ThreadContext::current();
  const bragg::FrameId frame = bragg::intern_frame(bragg::FrameKind::GpuApi, "cudaMalloc");
  const bragg::NodeId before = thread.here().shadow;
  bragg::recording_state.api_calls.store(1);  // a session follows calls
  for (const bool is_told : {true, false}) {
    thread.begin_api_call({2, 20, CorrelationId{1}}, frame, 0, bragg::recording_state.api_epoch.load());
    CHECK_EQ(bragg::CallingContextTree::instance().frame(thread.here().shadow), frame);
    CHECK_EQ(bragg::CallingContextTree::instance().parent(thread.here().shadow), before);
    if (is_told) {
      thread.end_api_call(bragg::Waiting::No);
    } else {
      bragg::recording_state.api_epoch.fetch_add(1);
    }
    CHECK(!thread.api_call.is_open());
    CHECK_EQ(thread.here().shadow, before);
  }
  bragg::recording_state.api_calls.store(0);
}

TEST(the_outermost_call_counts_on_every_thread) {
  constexpr uint32_t kThreads = 4, kRounds = 2000;
  const Recording recording("api", {.gpu_api = BRAGG_GPU_API_ALL});
  device().use();
  const uint64_t before = recording.count("api_calls");
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back([] { launch_and_wait(kRounds); });
  for (auto& thread : threads) thread.join();
  recording.flush();
  // Besides: cuDevicePrimaryCtxRetain and cuStreamCreate of each thread, and the retain above.
  CHECK_EQ(recording.count("api_calls") - before, kThreads * (2 * kRounds + 2));
  CHECK_EQ(recording.count("kernels"), kThreads * kRounds);
  CHECK_EQ(recording.count("unattributed_records"), 0);
  CHECK_EQ(recording.count("dropped_events"), 0);
}

TEST(only_calls_that_wait_count_when_no_others_are_asked_for) {
  const Recording recording("sync", {.gpu_api = BRAGG_GPU_API_SYNC});
  launch_and_wait(50);
  recording.flush();
  CHECK_EQ(recording.count("api_calls"), 50);
  CHECK_EQ(recording.count("kernels"), 50);
}

TEST(no_call_counts_unless_a_session_that_records_asks_for_it) {
  const Recording plain("plain");
  launch_and_wait(10);
  CHECK_EQ(plain.count("api_calls"), 0);
  {
    const Recording asking("asking", {.gpu_api = BRAGG_GPU_API_SYNC});
    launch_and_wait(10);
    CHECK_EQ(asking.count("api_calls"), 10);
    asking.deactivate();
    launch_and_wait(10);
    CHECK_EQ(asking.count("api_calls"), 10);
  }
  CHECK_EQ(plain.count("api_calls"), 10);
  launch_and_wait(10);
  CHECK_EQ(plain.count("api_calls"), 10);
}

TEST(levels_change_while_threads_call) {
  Launchers launchers(2, [] { launch_and_wait(20); });
  for (int round = 0; round < 20; ++round) {
    launchers.go_on(10);
    const Recording sync("some", {.gpu_api = BRAGG_GPU_API_SYNC});
    const Recording all("all", {.trace = true, .gpu_api = BRAGG_GPU_API_ALL});
    launchers.go_on(10);
    all.deactivate();
    launchers.go_on(10);
    all.activate();
    all.flush();
    CHECK_EQ(all.count("dropped_records"), 0);
  }
  CHECK(!bragg::ThreadContext::current().api_call.is_open());
}

TEST(calls_for_the_recorder_itself_do_not_count) {
  const Recording recording("own", {.gpu_api = BRAGG_GPU_API_ALL});
  device().use();
  launch_by_runtime(device().kernel("k"), nullptr);
  const uint64_t before = recording.count("api_calls");
  recording.flush();
  recording.flush();
  CHECK_EQ(recording.count("api_calls"), before);
}

}  // namespace
