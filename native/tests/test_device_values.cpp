// Metric values in GPU memory, on the fake driver: what the kernel reads, how it is collected, and whose it is.
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/values/device_values.h"
#include "backends/cuda/values/value_kernel.h"
#include "check.h"
#include "context/recording_state.h"
#include "recording.h"

namespace {

using bragg::ArrivedValue;
using bragg::DeviceArray;
using bragg::MetricId;
using bragg::MetricKind;
using bragg::test::device;
using bragg::test::Recording;
using bragg::test::SecondGpu;
using bragg::value_kernel::Dtype;
using bragg::value_kernel::Log;
namespace cuda = bragg::cuda;
namespace device_values = bragg::device_values;

MetricId metric(const char* name, bool is_float, MetricKind kind = MetricKind::Inclusive) {
  return bragg::MetricNames::instance().intern(name, "", kind, is_float);
}

// Memory of the fake GPU that holds some numbers.
template <class T>
class Numbers {
 public:
  Numbers(std::initializer_list<T> values) {
    device().must("cuMemAlloc_v2", &address_, values.size() * sizeof(T));
    std::memcpy(reinterpret_cast<void*>(address_), std::data(values), values.size() * sizeof(T));
  }
  ~Numbers() { device().must("cuMemFree_v2", address_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  [[nodiscard]] cuda::DevicePointer address(size_t index = 0) const { return address_ + index * sizeof(T); }
  void set(T value) { std::memcpy(reinterpret_cast<void*>(address_), &value, sizeof value); }

 private:
  cuda::DevicePointer address_ = 0;
};

// Something records, but no consumer runs: tests take what arrived themselves.
class NoConsumer {
 public:
  NoConsumer() {
    device().use();
    (void)device_values::take_arrived();
    bragg::recording_state.active.store(1);
  }
  ~NoConsumer() { bragg::recording_state.active.store(0); }
};

void add(MetricId metric, const DeviceArray& array, cuda::Stream stream = nullptr) {
  CHECK_EQ(device_values::add(metric, array, stream), "");
}

template <class T>
void check_reads(Dtype dtype, T stored, double expected) {
  const Numbers<T> numbers{stored};
  add(metric("as float", true), {numbers.address(), dtype, 0, 1});
  if (dtype > Dtype::F64) add(metric("as integer", false), {numbers.address(), dtype, 0, 1});
  const std::vector<ArrivedValue> arrived = device_values::take_arrived();
  REQUIRE(arrived.size() == (dtype > Dtype::F64 ? 2u : 1u));
  CHECK_EQ(std::bit_cast<double>(arrived[0].bits), expected);
  if (arrived.size() == 2) CHECK_EQ(static_cast<int64_t>(arrived[1].bits), static_cast<int64_t>(expected));
}

TEST(a_value_is_read_as_its_dtype_says) {
  const NoConsumer no_consumer;
  check_reads<uint16_t>(Dtype::F16, 0xC248, -3.140625);
  check_reads<uint16_t>(Dtype::F16, 0x0001, 0x1p-24);
  check_reads<uint16_t>(Dtype::BF16, 0x4049, 3.140625);
  check_reads<float>(Dtype::F32, -0.5f, -0.5);
  check_reads<double>(Dtype::F64, 1e300, 1e300);
  check_reads<int8_t>(Dtype::I8, -128, -128);
  check_reads<int16_t>(Dtype::I16, -32768, -32768);
  check_reads<int32_t>(Dtype::I32, -7, -7);
  check_reads<int64_t>(Dtype::I64, int64_t{-1} << 62, -0x1p62);
  check_reads<uint8_t>(Dtype::U8, 255, 255);
  check_reads<uint8_t>(Dtype::Bool, 2, 1);
}

TEST(a_vector_is_read_with_its_stride) {
  const NoConsumer no_consumer;
  const Numbers<int32_t> numbers{1, 2, 3, 4, 5, 6};
  add(metric("forwards", false), {numbers.address(1), Dtype::I32, 3, 2});
  add(metric("backwards", false), {numbers.address(5), Dtype::I32, 2, -3});
  std::vector<int64_t> read;
  for (const ArrivedValue& value : device_values::take_arrived()) {
    read.push_back(static_cast<int64_t>(value.bits));
    CHECK_EQ(value.index, (read.size() - 1) % 3);
  }
  CHECK(read == std::vector<int64_t>({2, 4, 6, 6, 3}));
}

TEST(values_keep_their_order_as_long_as_the_log_has_room) {
  const NoConsumer no_consumer;
  Numbers<int64_t> numbers{0};
  const MetricId steps = metric("steps", false);
  for (int64_t round = 0; round < 2; ++round) {
    for (int64_t i = 0; i < static_cast<int64_t>(Log::kCapacity); ++i) {
      numbers.set(i);
      add(steps, {numbers.address(), Dtype::I64, 0, 1});
    }
    const std::vector<ArrivedValue> arrived = device_values::take_arrived();
    REQUIRE(arrived.size() == Log::kCapacity);
    for (size_t i = 0; i < arrived.size(); ++i) REQUIRE(arrived[i].bits == i && !arrived[i].is_unordered);
  }
}

TEST(what_a_full_log_does_not_take_is_summed_exactly) {
  const NoConsumer no_consumer;
  const uint32_t length = device_values::kMaxLength;
  const uint64_t fills = Log::kCapacity / length;
  cuda::DevicePointer filler = 0;
  device().must("cuMemAlloc_v2", &filler, length * sizeof(double));
  const MetricId fill = metric("fill", true);
  const auto fill_log = [&] {
    for (uint64_t i = 0; i < fills; ++i) add(fill, {filler, Dtype::F64, length, 1});
  };
  Numbers<double> number{0.5};
  const MetricId sum = metric("sum", true), last = metric("last", true, MetricKind::Property);
  for (double rounds = 1; rounds <= 2; ++rounds) {
    fill_log();
    for (const double value : {0.5, 0.25, 4.0}) {
      number.set(value * rounds);
      add(sum, {number.address(), Dtype::F64, 0, 1});
      add(last, {number.address(), Dtype::F64, 0, 1});
    }
    const std::vector<ArrivedValue> arrived = device_values::take_arrived();
    REQUIRE(arrived.size() == Log::kCapacity + 2);
    const ArrivedValue& summed = arrived[Log::kCapacity];
    CHECK(summed.is_unordered);
    CHECK_EQ(summed.count, 3);
    CHECK_EQ(std::bit_cast<double>(summed.bits), 4.75 * rounds);
    CHECK_EQ(std::bit_cast<double>(arrived[Log::kCapacity + 1].bits), 4.0 * rounds);
    CHECK(device_values::take_arrived().empty());
  }
  device().must("cuMemFree_v2", filler);
}

TEST(each_replay_of_a_graph_reads_the_value_again_where_it_was_captured) {
  const NoConsumer no_consumer;
  Numbers<float> number{0.0f};
  const cuda::Stream stream = device().stream();
  cuda::Graph graph = nullptr;
  cuda::GraphExec exec = nullptr;
  device().must("cuStreamBeginCapture_v2", stream, 0u);
  add(metric("loss", true), {number.address(), Dtype::F32, 0, 1}, stream);
  device().must("cuStreamEndCapture", stream, &graph);
  device().must("cuGraphInstantiateWithFlags", &exec, graph, uint64_t{0});
  CHECK(device_values::take_arrived().empty());
  for (const float value : {1.5f, 2.5f}) {
    number.set(value);
    device().must("cuGraphLaunch", exec, stream);
  }
  const std::vector<ArrivedValue> arrived = device_values::take_arrived();
  REQUIRE(arrived.size() == 2);
  CHECK_EQ(std::bit_cast<double>(arrived[1].bits), 2.5);
  CHECK_EQ(arrived[0].target.reading, bragg::ReadingId::None);  // nobody tells of the graph's launches here
}

TEST(a_first_value_may_be_captured) {
  const NoConsumer no_consumer;
  const SecondGpu gpu;  // nothing was read on this device before
  const Numbers<float> number{1.0f};
  const cuda::Stream stream = device().stream();
  cuda::Graph graph = nullptr;
  device().must("cuStreamBeginCapture_v2", stream, 0u);
  add(metric("loss", true), {number.address(), Dtype::F32, 0, 1}, stream);
  device().must("cuStreamEndCapture", stream, &graph);
  device().must("cuGraphDestroy", graph);
}

TEST(a_value_on_another_device_than_the_current_is_read_there) {
  const NoConsumer no_consumer;
  const SecondGpu gpu;
  const Numbers<float> number{8.0f};
  const cuda::Stream stream = device().stream();
  device().use(0);
  const MetricId there = metric("there", true);
  add(there, {number.address(), Dtype::F32, 0, 1}, stream);
  add(there, {number.address(), Dtype::F32, 0, 1});
  CHECK_EQ(device_values::take_arrived().size(), 2);
  const Numbers<float> here{8.0f};
  CHECK_EQ(device_values::add(there, {here.address(), Dtype::F32, 0, 1}, stream),
           "the metric value is on another GPU than the stream");
}

TEST(what_cannot_be_read_is_refused_with_a_reason) {
  const NoConsumer no_consumer;
  const Numbers<float> number{1.0f};
  float on_host = 1.0f;
  const auto host_address = reinterpret_cast<uint64_t>(&on_host);
  CHECK_EQ(device_values::add(metric("loss", true), {host_address, Dtype::F32, 0, 1}, nullptr),
           "the address of the metric value is not memory of a GPU");
  CHECK_EQ(device_values::add(metric("whole", false), {number.address(), Dtype::F32, 0, 1}, nullptr),
           "the metric holds integers and was given floating point numbers");
  CHECK_EQ(device_values::add(metric("loss", true), {number.address(), Dtype::F32, 4097, 1}, nullptr),
           "a metric has at most 4096 elements");
  CHECK_EQ(device_values::add(MetricId::None, {number.address(), Dtype::F32, 0, 1}, nullptr), "unknown metric id");
  CHECK(device_values::take_arrived().empty());
}

TEST(nothing_is_read_while_nothing_records) {
  device().use();
  const Numbers<float> number{1.0f};
  CHECK_EQ(device_values::add(metric("loss", true), {number.address(), Dtype::F32, 0, 1}, nullptr), "");
  CHECK(device_values::take_arrived().empty());
}

TEST(a_fork_does_not_wait_for_a_driver_that_loads_the_kernel) {
  const NoConsumer no_consumer;
  bragg::test::set_knob("module_load_ms", 5000);
  std::thread loading([] {
    cuda::Context context = nullptr;
    device().must("cuCtxCreate_v2", &context, 0u, 0);
    const Numbers<float> numbers{1.0f};
    add(metric("loss", true), {numbers.address(), Dtype::F32, 0, 1});
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto before = std::chrono::steady_clock::now();
  device_values::lock_for_fork();
  device_values::unlock_after_fork();
  CHECK(std::chrono::steady_clock::now() - before < std::chrono::milliseconds(4500));
  bragg::test::set_knob("module_load_ms", 0);
  loading.join();
}

TEST(values_of_all_threads_and_streams_are_counted_and_our_kernels_are_not) {
  constexpr uint32_t kThreads = 4, kRounds = 500;
  const Recording recording("values");
  const MetricId tokens = metric("tokens", false), counts = metric("counts", false);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      device().use();
      const Numbers<int32_t> numbers{3, 5};
      const cuda::Stream stream = device().stream();
      const cuda::Function kernel = device().kernel("k");
      for (uint32_t round = 0; round < kRounds; ++round) {
        device().launch(kernel, stream);
        add(tokens, {numbers.address(), Dtype::I32, 0, 1}, stream);
        add(counts, {numbers.address(), Dtype::I32, 2, 1}, stream);
      }
    });
  for (auto& thread : threads) thread.join();
  recording.flush();
  const uint64_t rounds = kThreads * kRounds;
  CHECK_EQ(recording.value(number_of(tokens)).count, rounds);
  CHECK_EQ(recording.value(number_of(tokens)).bits, 3 * rounds);
  CHECK_EQ(recording.value(number_of(counts), 1).bits, 5 * rounds);
  CHECK_EQ(recording.count("launches"), rounds);
  CHECK_EQ(recording.count("kernels"), rounds);
  CHECK_EQ(recording.count("metric_kernels"), 2 * rounds);
  CHECK(recording.count("metric_kernels_ns") > 0);
  CHECK_EQ(recording.count("unattributed_records"), 0);
}

}  // namespace
