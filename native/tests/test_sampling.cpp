// Instruction samples: whose they are, when to take them, and the whole way through the fake CUPTI.
#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/driver/pc_sampling_library.h"
#include "backends/cuda/samples/duty_cycle.h"
#include "backends/cuda/samples/launch_gate.h"
#include "backends/cuda/samples/pc_sampling.h"
#include "backends/cuda/samples/sampled_spans.h"
#include "check.h"
#include "context/thread_context.h"
#include "data/sample_attribution.h"
#include "recording.h"

namespace {

using bragg::Code;
using bragg::CorrelationId;
using bragg::DutyCycle;
using bragg::NodeId;
using bragg::PcSample;
using bragg::SampleAttribution;
using bragg::SampleTarget;
using bragg::test::comes_true;
using bragg::test::device;
using bragg::test::Recording;

constexpr bragg::StringId kMatmul{1}, kSoftmax{2}, kStall{3};

struct Received {
  std::map<NodeId, uint64_t> count;
  uint64_t exact = 0;
  uint64_t nobodys = 0;
  SampleAttribution::Give give = [this](const SampleTarget* target, const Code&, const PcSample&, uint64_t samples,
                                        bool is_exact) {
    if (target == nullptr) {
      nobodys += samples;
    } else {
      count[target->node] += samples;
    }
    exact += is_exact ? samples : 0;
  };
};

PcSample sample(bragg::StringId function, uint32_t pc_offset, uint64_t count, uint64_t crc = 7,
                CorrelationId correlation = CorrelationId::None) {
  return {crc, function, kStall, pc_offset, correlation, count};
}

TEST(samples_of_a_function_that_one_node_launched_are_exactly_its) {
  SampleAttribution attribution;
  Received received;
  attribution.add({{0, NodeId{5}}, kMatmul, 0, CorrelationId::None, 1000});
  attribution.add(sample(kMatmul, 16, 90));
  attribution.settle(received.give);
  CHECK_EQ(received.count[NodeId{5}], 90);
  CHECK_EQ(received.exact, 90);
}

TEST(samples_are_shared_out_by_weight_and_none_is_lost_to_rounding) {
  SampleAttribution attribution;
  Received received;
  attribution.add({{0, NodeId{5}}, kMatmul, 0, CorrelationId::None, 600});
  attribution.add({{0, NodeId{6}}, kMatmul, 0, CorrelationId::None, 300});
  attribution.add({{0, NodeId{7}}, kMatmul, 0, CorrelationId::None, 100});
  for (uint32_t i = 0; i < 1000; ++i) attribution.add(sample(kMatmul, i * 16, 1));  // one each: all would go to node 5
  attribution.settle(received.give);
  CHECK_EQ(received.count[NodeId{5}], 600);
  CHECK_EQ(received.count[NodeId{6}], 300);
  CHECK_EQ(received.count[NodeId{7}], 100);
  CHECK_EQ(received.exact, 0);
}

TEST(cubins_with_a_function_of_the_same_name_are_told_apart) {
  SampleAttribution attribution;
  Received received;
  attribution.add({{0, NodeId{5}}, kMatmul, 7, CorrelationId::None, 1});
  attribution.add({{0, NodeId{6}}, kMatmul, 8, CorrelationId::None, 999});
  attribution.add(sample(kMatmul, 0, 40, 7));
  attribution.add(sample(kMatmul, 0, 4, 8));
  attribution.settle(received.give);
  CHECK_EQ(received.count[NodeId{5}], 40);
  CHECK_EQ(received.count[NodeId{6}], 4);
  CHECK_EQ(received.exact, 44);
}

TEST(samples_wait_for_their_kernels_and_find_those_of_the_window_before) {
  SampleAttribution attribution;
  Received received;
  attribution.add(sample(kMatmul, 0, 3));
  attribution.settle(received.give);
  CHECK_EQ(received.count[NodeId{5}], 0);
  attribution.add({{0, NodeId{5}}, kMatmul, 0, CorrelationId::None, 10});
  attribution.settle(received.give);
  CHECK_EQ(received.count[NodeId{5}], 3);
  attribution.add(sample(kMatmul, 0, 4));
  attribution.settle(received.give);
  CHECK_EQ(received.count[NodeId{5}], 7);
  attribution.add(sample(kSoftmax, 0, 2));
  attribution.settle(received.give);
  attribution.give_up(received.give);
  CHECK_EQ(received.nobodys, 2);
}

TEST(kernels_that_ran_while_nothing_was_sampled_have_no_share) {
  SampleAttribution attribution;
  Received received;
  attribution.add({{0, NodeId{5}}, kMatmul, 0, CorrelationId::None, 0});
  attribution.add({{0, NodeId{6}}, kMatmul, 0, CorrelationId::None, 10});
  attribution.add(sample(kMatmul, 0, 8));
  attribution.settle(received.give);
  CHECK_EQ(received.count[NodeId{6}], 8);
  CHECK_EQ(received.exact, 8);
}

TEST(only_the_time_within_windows_is_sampled) {
  constexpr uint32_t kDevice = 1000;
  auto& spans = bragg::SampledSpans::instance();
  CHECK_EQ(spans.overlap_ns(kDevice, 0, 50), 0);
  for (int64_t window = 0; window < 1000; ++window) {
    spans.begin(kDevice, window * 100);
    spans.begin(kDevice, window * 100 + 5);  // it has begun
    spans.end(kDevice, window * 100 + 20);
  }
  CHECK_EQ(spans.overlap_ns(kDevice, 99'810, 99'930), 10 + 20);
  CHECK_EQ(spans.overlap_ns(kDevice, 99'830, 99'890), 0);
  spans.begin(kDevice, 100'000);
  CHECK_EQ(spans.overlap_ns(kDevice, 99'990, 100'070), 70);  // it goes on
  CHECK_EQ(spans.overlap_ns(kDevice + 1, 100'000, 100'070), 0);
}

TEST(serialized_samples_belong_to_their_launch) {
  SampleAttribution attribution;
  Received received;
  attribution.add({{0, NodeId{5}}, kMatmul, 0, CorrelationId{100}, 1});
  attribution.add({{0, NodeId{6}}, kMatmul, 0, CorrelationId{101}, 999});
  attribution.add(sample(kMatmul, 0, 8, 7, CorrelationId{100}));
  attribution.add(sample(kMatmul, 0, 9, 7, CorrelationId{101}));
  attribution.settle(received.give);
  CHECK_EQ(received.count[NodeId{5}], 8);
  CHECK_EQ(received.count[NodeId{6}], 9);
  CHECK_EQ(received.exact, 17);
}

TEST(a_session_that_has_ended_gets_no_more_samples) {
  SampleAttribution attribution;
  Received received;
  attribution.add({{0, NodeId{5}}, kMatmul, 0, CorrelationId::None, 10});
  attribution.add({{1, NodeId{6}}, kMatmul, 0, CorrelationId::None, 10});
  attribution.forget(0);
  attribution.add(sample(kMatmul, 0, 3));
  attribution.settle(received.give);
  CHECK_EQ(received.count[NodeId{5}], 0);
  CHECK_EQ(received.count[NodeId{6}], 3);
}

TEST(every_refusal_says_what_is_in_the_way_and_what_to_do) {
  bragg::CuptiLibrary cupti;
  std::string reason;
  (void)device();
  CHECK(bragg::load_cupti(BRAGG_FAKES_DIR "/libcupti.so.13", cupti, reason));
  const std::map<uint32_t, const char*> known = {
      {2, "compute capability 7.5"},
      {27, "compute capability 7.5"},
      {33, "vGPU settings"},
      {35, "NVreg_RestrictProfilingToAdminUsers=0"},
      {40, "vGPU settings"},  // forbidden by the hypervisor
      {41, "development mode"},
      {42, "mining GPUs"},
      {43, "MIG instance cannot: use a GPU that is not partitioned"},
      {44, "switch SLI off"},
      {45, "use Linux itself"},
  };
  for (const auto& [result, expected] : known) {
    const std::string text = bragg::sampling_refusal(cupti, static_cast<bragg::cupti::Result>(result));
    CHECK(text.find(expected) != std::string::npos);
    CHECK(text.find("CUPTI says: ") != std::string::npos);
  }
  const std::string unknown = bragg::sampling_refusal(cupti, bragg::cupti::Result::Unknown);
  CHECK(unknown.starts_with("CUPTI says: "));
}

// Windows of a program that launches every microsecond, and `slower` in windows.
double reached(double budget, double slower, int64_t call_ns) {
  DutyCycle cycle(budget);
  int64_t now_ns = 1;
  double launches = 0;
  while (now_ns < 60'000'000'000) {
    constexpr int64_t kStepNs = 5'000'000;
    now_ns += kStepNs;
    launches += kStepNs / 1000.0 / (cycle.is_open() ? 1 + slower : 1);
    if (!cycle.is_due(now_ns, static_cast<uint64_t>(launches))) continue;
    now_ns += call_ns;
    if (cycle.is_open()) {
      cycle.closed(now_ns, call_ns, static_cast<uint64_t>(launches));
      if (cycle.windows() > 1) CHECK(cycle.reached(now_ns) <= 1.05 * budget);  // wherever the program ends
    } else {
      cycle.opened(now_ns, call_ns, static_cast<uint64_t>(launches));
    }
  }
  CHECK(cycle.windows() > 20);
  CHECK(cycle.slowdown() > slower - 0.05 && cycle.slowdown() < slower + 0.05);
  return cycle.reached(now_ns);
}

TEST(windows_stay_within_their_budget_and_use_it) {
  for (const double budget : {0.03, 0.2})
    for (const double slower : {0.02, 0.5}) {
      const double share = reached(budget, slower, 1'000'000);
      CHECK(share <= budget);
      CHECK(share > 0.02);
    }
}

constexpr int64_t kMs = 1'000'000;

TEST(a_window_begins_with_its_first_launch) {
  DutyCycle cycle(0.1);
  CHECK(cycle.is_due(1, 100));
  cycle.opened(400 * kMs, 399 * kMs, 100);
  CHECK(!cycle.is_due(450 * kMs, 100));  // what the first window kept waiting has not come back yet
  CHECK(!cycle.is_due(460 * kMs, 101));
  CHECK(cycle.is_due(470 * kMs, 102));
  cycle.closed(470 * kMs, 0, 102);
  cycle.opened(2'000 * kMs, 0, 102);
  CHECK(!cycle.is_due(2'900 * kMs, 102));
  CHECK(cycle.is_due(3'020 * kMs, 102));  // of a program that launches nothing any more
}

TEST(a_window_before_the_first_launch_does_not_put_off_the_next_one) {
  DutyCycle cycle(0.1);
  CHECK(cycle.is_due(1, 0));
  cycle.opened(100 * kMs, 99 * kMs, 0);
  int64_t now_ns = 100 * kMs;
  while (!cycle.is_due(now_ns, 0)) now_ns += 10 * kMs;
  CHECK(now_ns >= 1'100 * kMs && now_ns <= 1'130 * kMs);
  cycle.closed(now_ns, 0, 0);
  CHECK(cycle.open_ns() <= 30 * kMs);
  CHECK(cycle.is_due(now_ns + 110 * kMs, 0));
}

// On the fake GPU, where a kernel that runs for 2^20 ns on one multiprocessor has 2^(20 - period) samples.
constexpr uint64_t kKernelNs = 1u << 20;
constexpr uint32_t kPeriod = 12;

bragg::cuda::Function long_kernel(const char* name) {
  device().use();
  bragg::test::set_kernel_ns(name, kKernelNs);
  return device().kernel(name);
}

// As long as nothing is sampled yet, the statistic is missing, which is not a number of samples.
bool has_reached(const Recording& recording, const char* statistic, uint64_t least) {
  const uint64_t count = recording.count(statistic);
  return count >= least && count != ~uint64_t{0};
}

bool is_described(const char* text) { return bragg::pc_sampling::description_json().find(text) != std::string::npos; }

void sample_while_threads_launch(int mode) {
  Recording recording("sampling", false, 0, mode, kPeriod);
  const bragg::cuda::Function kernel = long_kernel("sampled");
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      device().use();
      const bragg::cuda::Stream stream = device().stream();
      while (!stop.load()) {
        device().launch(kernel, stream);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  for (int i = 0; i < 20; ++i) {  // control calls meanwhile
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    recording.deactivate();
    recording.activate();
    if (i % 5 == 0) recording.flush();
  }
  CHECK(comes_true([&] { return has_reached(recording, "total", 1000); }));
  stop.store(true);
  for (auto& thread : threads) thread.join();
  recording.flush();
  CHECK(has_reached(recording, "total", 1000));
  CHECK_EQ(recording.count("refused_samples"), 0);
}

TEST(threads_are_sampled_while_they_launch) { sample_while_threads_launch(BRAGG_SAMPLE_CONTINUOUS); }
TEST(threads_are_sampled_in_windows) { sample_while_threads_launch(BRAGG_SAMPLE_WINDOWS); }
TEST(threads_are_sampled_one_kernel_at_a_time) { sample_while_threads_launch(BRAGG_SAMPLE_SERIALIZED); }

// As cuBLAS does while it plans.
TEST(windows_open_and_close_between_calls_that_load_code) {
  Recording recording("loading", false, 0, BRAGG_SAMPLE_WINDOWS, kPeriod);
  const bragg::cuda::Function kernel = long_kernel("sampled");
  std::atomic<bool> stop{false};
  std::thread loading([&] {
    device().use();
    for (bragg::cuda::Function loaded{}; !stop.load();) device().must("cuKernelGetFunction", &loaded, kernel);
  });
  device().use();
  const bragg::cuda::Stream stream = device().stream();
  const auto has_windows = [] {
    const std::string text = bragg::pc_sampling::description_json();
    const size_t at = text.find("\"windows\":");
    return at != std::string::npos && std::stoi(text.substr(at + 10)) >= 3;
  };
  CHECK(comes_true([&] {
    device().launch(kernel, stream);
    return has_windows();
  }));
  stop.store(true);
  loading.join();
}

TEST(a_gate_that_is_not_opened_again_keeps_no_thread_for_ever) {
  std::atomic<bool> is_through{false};
  const bragg::LaunchGate::Closed gate;
  CHECK(static_cast<bool>(gate));
  std::thread thread([&] {
    bragg::ThreadContext& context = bragg::ThreadContext::current();
    bragg::LaunchGate::instance().enter(context);
    is_through.store(true);
    bragg::LaunchGate::instance().leave(context);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(!is_through.load());
  thread.join();
  CHECK(is_through.load());
}

TEST(contexts_that_end_together_are_sampled_no_more) {
  const Recording recording("ending", false, 0, BRAGG_SAMPLE_CONTINUOUS, kPeriod);
  bragg::cuda::Context contexts[2] = {};
  for (const int ordinal : {0, 1}) {
    device().must("cuCtxCreate_v2", &contexts[ordinal], 0u, ordinal);
    device().launch(device().kernel("sampled"), nullptr);
  }
  // A launch returns when its GPU is sampled, which is described a moment later.
  CHECK(comes_true([] { return is_described("\"0\":") && is_described("\"1\":"); }));
  for (const bragg::cuda::Context context : contexts) device().must("cuCtxDestroy_v2", context);
  device().use();
  recording.flush();
  CHECK(comes_true([] { return is_described("\"devices\":{}"); }));
}

}  // namespace
