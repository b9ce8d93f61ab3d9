// Which launches are counted exactly, and what their counters become.
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/cuda.h"
#include "backends/cuda/exact/chosen_launches.h"
#include "backends/cuda/exact/exact_metrics.h"
#include "check.h"
#include "recording.h"

namespace {

using bragg::ChosenLaunches;
using bragg::ExactMetrics;
using bragg::KernelLaunch;

const int some_function = 0, other_function = 0;

KernelLaunch launch_of(const char* symbol, const void* function = &some_function, uint32_t grid = 1) {
  return {nullptr, function, symbol, {grid, 1, 1, 128, 1, 1, 0}, false};
}

TEST(a_kernel_is_chosen_by_its_symbol_its_demangled_name_or_that_of_a_framework) {
  ChosenLaunches chosen;
  CHECK_EQ(chosen.choose("copy_[0-9]+|vector_add<float>|my_kernel", 1), "");
  CHECK(chosen.find(launch_of("copy_12"), "") != nullptr);
  CHECK(chosen.find(launch_of("_Z10vector_addIfEvPT_"), "") != nullptr);
  CHECK(chosen.find(launch_of("triton_"), "my_kernel") != nullptr);
  CHECK(chosen.find(launch_of("copy_x"), "") == nullptr);
}

TEST(a_kernel_of_c_is_no_type_of_cpp) {  // which the runtime takes its symbol for
  ChosenLaunches chosen;
  CHECK_EQ(chosen.choose("float", 1), "");
  CHECK(chosen.find(launch_of("f"), "") == nullptr);
}

TEST(the_first_launches_of_each_shape_are_chosen) {
  ChosenLaunches chosen;
  CHECK_EQ(chosen.choose("copy", 2), "");
  for (int i = 0; i < 2; ++i) ++chosen.find(launch_of("copy"), "")->measured[0];
  CHECK(chosen.find(launch_of("copy"), "") == nullptr);
  CHECK(chosen.find(launch_of("copy", &some_function, 2), "") != nullptr);
  CHECK(chosen.find(launch_of("copy", &other_function), "") != nullptr);
  CHECK_EQ(chosen.measured_kernels(), 1);
}

TEST(sets_of_counters_take_turns_over_launches_and_change_seldom) {
  ChosenLaunches chosen;
  CHECK_EQ(chosen.choose("copy", 2), "");
  ChosenLaunches::Kernel& kernel = *chosen.find(launch_of("copy"), "");
  kernel.measured.resize(2);
  std::vector<size_t> sets{1};
  while (chosen.find(launch_of("copy"), "") != nullptr) {
    sets.push_back(kernel.next_set(sets.back()));
    ++kernel.measured[sets.back()];
    CHECK_EQ(chosen.incomplete_kernels(), sets.size() == 2 ? 1 : 0);
  }
  CHECK(sets == (std::vector<size_t>{1, 1, 0, 0, 1}));
}

TEST(kernels_that_wait_for_others_are_not_counted_and_told) {
  ChosenLaunches chosen;
  CHECK_EQ(chosen.choose(".", 1), "");
  KernelLaunch cooperative = launch_of("grid_sync");
  cooperative.is_cooperative = true;
  CHECK(chosen.find(cooperative, "") == nullptr);
  CHECK(chosen.find(launch_of("ncclDevKernel_AllReduce"), "") == nullptr);
  CHECK_EQ(chosen.not_measured_json(), R"({"communicates":1,"cooperative":1})");
}

TEST(what_is_wrong_with_an_expression_is_told) {
  ChosenLaunches chosen;
  CHECK(chosen.choose("copy(", 1).find("is not a POSIX extended regular expression") != std::string::npos);
  CHECK(chosen.find(launch_of("copy"), "") == nullptr);
}

TEST(flop_is_what_operations_follow_from) {
  const std::vector<bragg::Counter> counters = bragg::counters_of_range("flop,dram");
  std::vector<std::string> tracks;
  for (const bragg::Counter& each : counters) tracks.push_back(each.track);
  CHECK(tracks == (std::vector<std::string>{"DRAM read", "DRAM write", "smsp__sass_inst_executed",
                                            "smsp__sass_thread_inst_executed_pred_on"}));
}

TEST(counters_of_a_launch_are_amounts_and_shares_of_its_duration) {
  const ExactMetrics metrics(
      {{"r", "B/s", bragg::CounterScale::PerSecond, {{"read"}}, "dram_read_bytes", "dram"},
       {"w", "B/s", bragg::CounterScale::PerSecond, {{"write"}}, "dram_write_bytes", "dram"},
       {"t", "%", bragg::CounterScale::AsIs, {{"tensor"}}, "tensor_active_time", "tensor_active"},
       {"n", "", bragg::CounterScale::AsIs, {{"nothing"}}, "exact_test_nan", ""}});
  CHECK_EQ(metrics.names().size(), 5);
  CHECK_EQ(metrics.names()[0], "gpu__time_duration.sum");
  const std::vector<double> counted{2000, 300, 100, 25, std::numeric_limits<double>::quiet_NaN()};
  double sum = 0;
  const auto values = metrics.values_of(counted);
  for (const ExactMetrics::Value& each : values) sum += each.value;
  CHECK_EQ(values.size(), 6);  // read, write and both, tensor time, two counted times
  CHECK_EQ(sum, 300 + 100 + 400 + 500 + 2 * 2000);
  const ExactMetrics several({{"r", "B/s", bragg::CounterScale::PerSecond, {{"read"}}, "dram_read_bytes", "dram"},
                              {"s", "1/s", bragg::CounterScale::PerSecond, {{"sectors"}}, "exact_test_sectors", ""}},
                             true);
  CHECK_EQ(several.values_of(std::vector<double>{2000, 300, 100}).size(), 5);  // two, a time, two numbers of launches
}

}  // namespace

TEST(sessions_begin_and_pause_though_cupti_does_not_return_from_counting_a_launch) {
  const auto& device = bragg::test::device();
  device.use();
  bragg::test::Recording recording("counted", {});
  recording.activate();
  {
    const bragg::cuda_backend::NoKernelRecords of_the_launch;
    recording.deactivate();
    recording.activate();
  }
  device.launch(device.kernel("copy"), device.stream());
  CHECK_EQ(bragg::cuda_backend::state(), bragg::cuda_backend::State::Attached);
  const std::vector<uint64_t> found = recording.stop_and_find({"kernels", "missing_records"});
  CHECK_EQ(found[0], 1);
  CHECK_EQ(found[1], 0);
}

TEST(kernels_are_recorded_again_while_instructions_of_others_are_counted) {
  const auto& device = bragg::test::device();
  bragg::test::Recording recording("counted", {.exact_kernels = "^copy$", .exact_metrics = "smsp__sass_inst_executed"});
  recording.activate();
  std::atomic<bool> must_end{false};
  std::thread program([&] {
    device.use();
    const bragg::cuda::Stream stream = device.stream();
    while (!must_end.load()) device.launch(device.kernel("copy"), stream);
    for (int launch = 0; launch < 20; ++launch) device.launch(device.kernel("copy"), stream);  // between no pauses
  });
  for (int pause = 0; pause < 1000; ++pause) {
    recording.deactivate();
    recording.activate();
  }
  must_end.store(true);
  program.join();
  CHECK_EQ(bragg::cuda_backend::state(), bragg::cuda_backend::State::Attached);
  CHECK(recording.stop_and_find({"counted_launches"})[0] >= 20);
}
