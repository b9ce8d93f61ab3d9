// What is recorded, in which layout and order.
#include <algorithm>
#include <cstring>
#include <thread>

#include "selftest/profiler.h"
#include "selftest/program.h"
#include "selftest/scenario.h"

namespace bragg::fake::selftest {
namespace {

constexpr cupti::Kind kDeviceKinds[] = {cupti::Kind::ConcurrentKernel, cupti::Kind::Memcpy, cupti::Kind::Memset};

uint64_t duration_ns(const SeenRecord& record) { return record.end_ns - record.start_ns; }

}  // namespace

SCENARIO_FOR(records_walk_in_the_layout_of_each_release, "12.3", "12.4", "12.6", "12.8", "12.9", "13.0", "13.1", "13.2",
             "13.3", "13.4", "13.5") {
  const Program program;
  Profiler profiler;
  profiler.start({cupti::Kind::ConcurrentKernel, cupti::Kind::Memcpy, cupti::Kind::Memset, cupti::Kind::Driver});
  const cuda::Stream stream = program.stream();
  for (int i = 0; i < 100; ++i) {
    program.launch(program.function("k"), stream);
    program.copy_to_device(1000, stream);
    program.set(2000, stream);
  }
  program.synchronize();
  profiler.flush();
  for (const cupti::Kind kind : kDeviceKinds) CHECK_EQ(Profiler::records(kind).size(), 100);
  const SeenRecord kernel = Profiler::records(cupti::Kind::ConcurrentKernel).front();
  CHECK_EQ(kernel.name, "k");
  CHECK_EQ(kernel.grid_x, 4);
  CHECK_EQ(kernel.stream, 13);
  CHECK_EQ(Profiler::records(cupti::Kind::Memcpy)[7].size_bytes, 1000);
  CHECK_EQ(Profiler::records(cupti::Kind::Memset)[7].size_bytes, 2000);
}

SCENARIO_FOR(next_record_walks_as_record_size_does, "12.4", "12.8", "13.0", "13.4") {
  const Program program;
  const Profiler profiler;
  const uint32_t version = profiler.version();
  alignas(8) uint8_t buffer[1024] = {};
  size_t offset = 0;
  for (const cupti::Kind kind : {cupti::Kind::ConcurrentKernel, cupti::Kind::Driver, cupti::Kind::Memset}) {
    std::memcpy(buffer + offset, &kind, sizeof kind);
    offset += cupti::record_size(kind, version);
  }
  void* record = nullptr;
  std::vector<size_t> offsets;
  auto* next = profiler.find<cupti::CuptiActivityGetNextRecord>("cuptiActivityGetNextRecord");
  while (next(buffer, offset, &record) == Profiler::kOk)
    offsets.push_back(static_cast<size_t>(static_cast<uint8_t*>(record) - buffer));
  const size_t kernel_size = cupti::record_size(cupti::Kind::Kernel, version);
  CHECK(offsets == (std::vector<size_t>{0, kernel_size, kernel_size + 40}));
  CHECK_EQ(next(buffer, offset, &record), cupti::Result::MaxLimitReached);
}

SCENARIO(struct_size_is_told, {"CUPTI_VERSION", "13.4"}) {
  const Program program;
  const Profiler profiler;
  size_t size_bytes = 0;
  const auto ask = [&](cupti::Kind kind, uint32_t version) {
    return profiler.call<cupti::CuptiActivityGetStructSize>("cuptiActivityGetStructSize", kind, version, &size_bytes);
  };
  CHECK_EQ(ask(cupti::Kind::ConcurrentKernel, 0), Profiler::kOk);
  CHECK_EQ(size_bytes, 248);
  CHECK_EQ(ask(cupti::Kind::ConcurrentKernel, 130001), Profiler::kOk);
  CHECK_EQ(size_bytes, 216);
  CHECK_EQ(ask(cupti::Kind::ConcurrentKernel, 28), cupti::Result::NotSupported);
}

SCENARIO(only_enabled_kinds_are_recorded) {
  const Program program;
  Profiler profiler;
  profiler.start({cupti::Kind::ConcurrentKernel, cupti::Kind::Memcpy});
  const auto work = [&] {
    program.launch(program.function("k"));
    program.copy_to_device(64, nullptr);
    program.set(64, nullptr);
    program.synchronize();
    profiler.flush();
  };
  work();
  CHECK_EQ(Profiler::records().size(), 2);
  profiler.disable(cupti::Kind::Memcpy);
  work();
  CHECK_EQ(Profiler::records(cupti::Kind::ConcurrentKernel).size(), 2);
  CHECK_EQ(Profiler::records().size(), 3);
  CHECK_EQ(profiler.call<cupti::CuptiActivityEnable>("cuptiActivityEnable", cupti::Kind::Kernel),
           cupti::Result::NotCompatible);
  CHECK_EQ(profiler.call<cupti::CuptiActivityEnable>("cuptiActivityEnable", cupti::Kind{200}),
           cupti::Result::InvalidKind);
}

SCENARIO(kernels_of_a_stream_run_in_order_and_streams_overlap, {"VARY_NS", "0"}, {"CALL_NS", "10"}) {
  const Program program;
  Profiler profiler;
  profiler.start({cupti::Kind::ConcurrentKernel});
  const cuda::Stream one = program.stream(), two = program.stream();
  const cuda::Function kernel = program.function("k", 5000);
  program.launch(kernel, one);
  program.launch(kernel, one);
  program.launch(kernel, two);
  program.synchronize();
  profiler.flush();
  const auto records = Profiler::records();
  REQUIRE(records.size() == 3);
  for (const SeenRecord& record : records) CHECK_EQ(duration_ns(record), 5000);
  CHECK_EQ(records[1].start_ns, records[0].end_ns);
  CHECK(records[2].start_ns < records[0].end_ns);
}

SCENARIO(devices_have_their_own_lanes) {
  const Program program;
  Profiler profiler;
  profiler.start({cupti::Kind::ConcurrentKernel});
  for (const int32_t ordinal : {0, 1}) {
    (void)program.use_device(ordinal);
    program.launch(program.function("k"));
    program.synchronize();
  }
  profiler.flush();
  const auto records = Profiler::records();
  REQUIRE(records.size() == 2);
  CHECK_EQ(records[0].device, 0);
  CHECK_EQ(records[1].device, 1);
  CHECK(records[0].context != records[1].context);
  CHECK_EQ(records[1].stream, 7);
}

// A long kernel, then short ones on another stream.
static std::vector<std::string> names_in_order_of_records() {
  const Program program;
  Profiler profiler;
  profiler.start({cupti::Kind::ConcurrentKernel});
  const cuda::Stream one = program.stream(), two = program.stream();
  program.launch(program.function("long", 1'000'000), one);
  program.launch(program.function("short", 100), two);
  program.launch(program.function("short", 100), two);
  program.synchronize();
  profiler.flush();
  std::vector<std::string> names;
  for (const SeenRecord& record : Profiler::records()) names.push_back(record.name);
  return names;
}

SCENARIO(records_come_in_order_of_launch_from_13_0, {"CUPTI_VERSION", "13.0"}) {
  CHECK(names_in_order_of_records() == (std::vector<std::string>{"long", "short", "short"}));
}

SCENARIO(records_come_in_order_of_completion_before_13_0, {"CUPTI_VERSION", "12.9"}) {
  CHECK(names_in_order_of_records() == (std::vector<std::string>{"short", "short", "long"}));
}

SCENARIO(order_of_completion_can_be_ordered, {"CUPTI_VERSION", "13.0"}, {"COMPLETION_ORDER", "1"}) {
  CHECK(names_in_order_of_records() == (std::vector<std::string>{"short", "short", "long"}));
}

static bool kernel_precedes_its_api_record() {
  const Program program;
  Profiler profiler;
  profiler.start({cupti::Kind::ConcurrentKernel, cupti::Kind::Driver});
  program.launch(program.function("k"));
  program.synchronize();
  profiler.flush();
  const auto records = Profiler::records();
  const auto launch = std::find_if(records.begin(), records.end(), [](const SeenRecord& record) {
    return record.cbid == cupti::cbid_of("cuLaunchKernel");
  });
  const auto kernel = std::find_if(records.begin(), records.end(), [](const SeenRecord& record) {
    return record.kind == cupti::Kind::ConcurrentKernel;
  });
  if (!CHECK(launch != records.end() && kernel != records.end())) return false;
  CHECK_EQ(launch->correlation, kernel->correlation);
  CHECK(launch->start_ns <= kernel->start_ns && launch->end_ns >= launch->start_ns);
  return kernel < launch;
}

SCENARIO(kernel_record_precedes_the_api_record_from_13_0, {"CUPTI_VERSION", "13.0"}) {
  CHECK(kernel_precedes_its_api_record());
}

SCENARIO(kernel_record_follows_the_api_record_before_13_0, {"CUPTI_VERSION", "12.8"}) {
  CHECK(!kernel_precedes_its_api_record());
}

SCENARIO(every_launch_of_many_threads_is_recorded_once) {
  constexpr size_t kThreads = 4, kLaunches = 20'000;
  const Program program;
  Profiler profiler;
  profiler.start({cupti::Kind::ConcurrentKernel});
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      (void)program.use_device(0);
      const cuda::Stream stream = program.stream();
      const cuda::Function kernel = program.function("k");
      for (size_t launch = 0; launch < kLaunches; ++launch) program.launch(kernel, stream);
    });
  std::thread flusher([&] {
    for (int i = 0; i < 20; ++i) profiler.flush();
  });
  for (std::thread& thread : threads) thread.join();
  flusher.join();
  program.synchronize();
  profiler.flush();
  auto records = Profiler::records();
  REQUIRE(records.size() == kThreads * kLaunches);
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return a.correlation < b.correlation; });
  CHECK(std::adjacent_find(records.begin(), records.end(), [](const auto& a, const auto& b) {
          return a.correlation == b.correlation;
        }) == records.end());
  CHECK_EQ(profiler.dropped(), 0);
}

}  // namespace bragg::fake::selftest
