// Telemetry of a virtual GPU through the fake NVML.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/driver/cuda_driver.h"
#include "backends/telemetry/gpu_telemetry.h"
#include "backends/telemetry/kept_power.h"
#include "backends/telemetry/telemetry_cost.h"
#include "check.h"
#include "context/clock.h"
#include "recording.h"

namespace {

constexpr int64_t kSecondNs = 1'000'000'000, kBudgetNs = 100'000;

bool is_near(double value, double expected) { return std::abs(value - expected) <= 1e-6 * std::abs(expected); }

// The copy of the fake that the core finds by its name.
struct FakeNvml {
  FakeNvml() : library(dlopen(BRAGG_FAKES_DIR "/libnvidia-ml.so.1", RTLD_NOW)) {
    (void)bragg::test::device();  // the driver, whose GPUs they are
    std::string reason;
    is_loaded = nvml.load(reason);
    if (!is_loaded) bragg::test::fail(__FILE__, __LINE__, reason);
  }
  void set(const char* name, int64_t value) const {
    reinterpret_cast<bool (*)(const char*, int64_t)>(dlsym(library, "bragg_fake_nvml_set"))(name, value);
  }
  // How often a function was called so far.
  [[nodiscard]] int64_t calls(const char* name) const {
    return reinterpret_cast<int64_t (*)(const char*)>(dlsym(library, "bragg_fake_nvml_calls"))(name);
  }

  void* library;
  bragg::NvmlLibrary nvml;
  bool is_loaded = false;
};

constexpr size_t kPower = bragg::gpu_quantity::kPower;

bragg::GpuTelemetry gpu_of(const FakeNvml& fake, uint32_t ordinal) {
  return {fake.nvml, ordinal, bragg::CudaDriver::mapped().uuid(ordinal)};
}

bragg::nvml::Device device_of(const FakeNvml& fake) {
  bragg::nvml::Device device = nullptr;
  CHECK(fake.nvml.handle_by_uuid(gpu_of(fake, 0).uuid().c_str(), &device) == bragg::nvml::Result::Success);
  return device;
}

constexpr std::chrono::seconds kNow(0), kLongAgo(60);

// As it is until the end of a scope.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

TEST(a_gpu_is_found_by_its_uuid) {
  const FakeNvml fake;
  REQUIRE(fake.is_loaded);
  bragg::GpuTelemetry gpu = gpu_of(fake, 1);
  const bragg::GpuReading reading = gpu.read(bragg::monotonic_ns(), kBudgetNs).back().reading;
  CHECK(std::isnan(reading.values[bragg::gpu_quantity::kPcieSent]));  // the first
  CHECK(is_near(reading.values[bragg::gpu_quantity::kMemoryUsed], 20.0 * (1 << 30)));
  bragg::JsonObject json;
  gpu.describe(json);
  CHECK(json.text().find(
            "\"power_is\":\"instant\",\"missing\":{\"nvlink_received_bytes_per_s\":\"Invalid Argument (2)\"") !=
        std::string::npos);  // the second GPU has none
}

TEST(power_that_the_driver_keeps_comes_once_and_is_the_energy_of_the_counter) {
  constexpr int64_t kStepNs = 20'000'000;
  constexpr double kStepS = 0.02, kHighW = 400, kLowW = 250;
  const FakeNvml fake;
  REQUIRE(fake.is_loaded);
  const int64_t begin_ns = bragg::monotonic_ns();
  bragg::GpuTelemetry gpu = gpu_of(fake, 0);
  const auto before = gpu.energy_mj();
  std::vector<bragg::TimedReading> readings;
  for (const double watts : {kLowW, kHighW, kLowW}) {
    fake.set("nvml_power_mw", std::lround(watts * 1e3));
    std::this_thread::sleep_for(std::chrono::milliseconds(70));
    for (const auto& each : gpu.take_kept(bragg::monotonic_ns())) readings.push_back(each);
  }
  const auto after = gpu.energy_mj();
  fake.set("nvml_power_mw", 400'000);
  REQUIRE(before && after && readings.size() >= 9);
  CHECK(readings.front().monotonic_ns >= begin_ns && readings.front().monotonic_ns <= begin_ns + 2 * kStepNs);
  double joules = 0;
  for (size_t i = 0; i < readings.size(); ++i) {
    const double watts = readings[i].reading.values[kPower];
    CHECK(is_near(watts, kLowW) || is_near(watts, kHighW));
    joules += watts * kStepS;
    const int64_t apart_ns = i == 0 ? kStepNs : readings[i].monotonic_ns - readings[i - 1].monotonic_ns;
    CHECK(std::abs(apart_ns - kStepNs) < kStepNs / 2);
  }
  // A step at the begin, and one at the end; two in which power changed; and the reading of the counter.
  CHECK(std::abs(joules - static_cast<double>(*after - *before) / 1e3) <= 6 * kStepS * kHighW);
}

TEST(power_that_is_known_or_not_wanted_is_not_taken_again) {
  const FakeNvml fake;
  REQUIRE(fake.is_loaded);
  bragg::GpuTelemetry gpu = gpu_of(fake, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto readings = gpu.take_kept(bragg::monotonic_ns());
  REQUIRE(readings.size() >= 2);
  bragg::GpuTelemetry other = gpu_of(fake, 0);  // of a process that gets readings of this one
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto more = gpu.take_kept(bragg::monotonic_ns());
  REQUIRE(!more.empty());
  other.skip_kept(more.back().monotonic_ns);
  for (const auto& each : other.take_kept(bragg::monotonic_ns()))
    CHECK(each.monotonic_ns > more.back().monotonic_ns + 10'000'000);
}

TEST(where_few_samples_are_kept_they_are_asked_for_more_often) {
  const Environment few("BRAGG_FAKE_NVML_KEPT", "3");
  const FakeNvml fake;
  REQUIRE(fake.is_loaded);
  bragg::KeptPower power(fake.nvml, device_of(fake), kNow);
  int64_t now_ns = 2 * kSecondNs;
  for (int i = 0; i < 12 && !power.is_due(now_ns + kSecondNs / 8); ++i) {
    std::vector<bragg::TimedReading> readings;
    std::this_thread::sleep_for(std::chrono::milliseconds(65));
    CHECK(power.is_due(now_ns));
    power.take(now_ns, readings);
    CHECK_EQ(readings.size(), 3);
    for (int64_t step = 0; !power.is_due(now_ns); ++step) now_ns += kSecondNs / 100;
  }
  CHECK(power.is_due(now_ns + kSecondNs / 8));
}

TEST(a_driver_that_keeps_nothing_for_long_is_not_asked_again) {
  const Environment none("BRAGG_FAKE_NVML_KEPT", "0");
  const FakeNvml fake;
  REQUIRE(fake.is_loaded);
  std::vector<bragg::TimedReading> readings;
  bragg::KeptPower fresh(fake.nvml, device_of(fake), kNow), old(fake.nvml, device_of(fake), kLongAgo);
  for (bragg::KeptPower* power : {&fresh, &old}) power->take(kSecondNs, readings);
  CHECK(readings.empty() && fresh.reason().empty());
  CHECK_EQ(old.reason(), std::string("Not Found (6)"));
}

TEST(without_kept_samples_power_is_asked_for_each_time) {
  const Environment lacks("BRAGG_FAKE_NVML_LACKS", "samples");
  const FakeNvml fake;
  REQUIRE(fake.is_loaded);
  bragg::GpuTelemetry gpu = gpu_of(fake, 0);
  for (int i = 0; i < 3; ++i) {
    const auto readings = gpu.read(kSecondNs + i, kBudgetNs);
    REQUIRE(readings.size() == 1);
    CHECK(is_near(readings[0].reading.values[kPower], 400));
    CHECK_EQ(readings[0].monotonic_ns, kSecondNs + i);
  }
}

TEST(a_gpu_whose_calls_take_long_is_read_within_its_budget) {
  const FakeNvml fake;
  REQUIRE(fake.is_loaded);
  constexpr int64_t kCallUs = 70, kReadings = 400;  // as in a virtual machine, 10 times a second
  fake.set("nvml_busy_us", kCallUs);
  bragg::GpuTelemetry gpu = gpu_of(fake, 0);
  const auto all_calls = [&] {
    int64_t calls = 0;
    for (const char* name : {"nvmlDeviceGetSamples", "nvmlDeviceGetFieldValues", "nvmlDeviceGetPowerUsage",
                             "nvmlDeviceGetClockInfo", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo",
                             "nvmlDeviceGetTemperature", "nvmlDeviceGetCurrentClocksEventReasons"})
      calls += fake.calls(name);
    return calls;
  };
  const int64_t before = all_calls(), kept_before = fake.calls("nvmlDeviceGetSamples");
  int64_t clocks = 0;
  for (int64_t i = 0; i < kReadings; ++i) {
    const bragg::GpuReading reading = gpu.read(kSecondNs * (20 + i) / 10, kBudgetNs).back().reading;
    clocks += std::isfinite(reading.values[bragg::gpu_quantity::kSmClock]) && reading.clock_reasons.has_value();
  }
  fake.set("nvml_busy_us", 0);
  constexpr int64_t kFirst = 16;  // all of them at once, twice
  CHECK_EQ(fake.calls("nvmlDeviceGetSamples") - kept_before, kReadings / 20);
  CHECK((all_calls() - before - kFirst) * kCallUs * 1000 <= kReadings * kBudgetNs);
  CHECK(clocks >= kReadings / 40);
}

TEST(rates_are_those_between_the_two_reads_however_late_in_their_samples) {
  constexpr double kReceived = 2e9, kReceivedByLinks = 10 * 1024e6;  // a second, of the fake
  const FakeNvml fake;
  REQUIRE(fake.is_loaded);
  bragg::GpuTelemetry gpu = gpu_of(fake, 0);
  (void)gpu.read(bragg::monotonic_ns(), kBudgetNs);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  fake.set("nvml_slow_ms", 20);  // what is asked before takes longer than the time since
  const auto rates = gpu.read(bragg::monotonic_ns(), kBudgetNs).back().reading.values;
  fake.set("nvml_slow_ms", 0);
  CHECK(std::abs(rates[bragg::gpu_quantity::kPcieReceived] / kReceived - 1) < 0.2);
  CHECK(std::abs(rates[bragg::gpu_quantity::kNvlinkSent] / kReceivedByLinks - 1) < 0.2);
}

TEST(a_gpu_that_nvml_does_not_know_has_no_readings) {
  const FakeNvml fake;
  REQUIRE(fake.is_loaded);
  for (const std::string uuid : {"", "00112233445566778899aabbccddeeff", "short"}) {
    bragg::GpuTelemetry gpu(fake.nvml, 0, uuid);
    CHECK(gpu.read(kSecondNs, kBudgetNs).empty() && gpu.take_kept(kSecondNs).empty());
    CHECK(!gpu.energy_mj().has_value());
    bragg::JsonObject json;
    gpu.describe(json);
    CHECK(json.text().find("\"reason\":") != std::string::npos);
  }
}

TEST(telemetry_follows_pauses_and_phases_while_threads_launch) {
  const FakeNvml fake;
  const bragg::test::Device& device = bragg::test::device();
  bragg::test::Recording recording("telemetry", {.trace = true, .telemetry_hz = 100});
  std::atomic<bool> must_end{false};
  std::thread program([&] {
    device.use();
    for (const bragg::cuda::Stream stream = device.stream(); !must_end.load();) {
      device.launch(device.kernel("work"), stream);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (int phase = 0; phase < 5; ++phase) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    recording.advance();
    recording.deactivate();
    recording.activate();
  }
  // Energy of the phase that goes on, up to its last border.
  CHECK(bragg::test::comes_true([&] {
    recording.deactivate();
    recording.activate();
    return recording.count("energy_ns") < 60'000'000'000;
  }));
  must_end.store(true);
  program.join();
  (void)recording.stop_and_count_all("kernels");
}

TEST(power_of_a_pause_is_left_out_though_the_driver_keeps_it) {
  const FakeNvml fake;
  bragg::test::Recording recording("pause", {.telemetry_hz = 100});
  const bragg::test::Device& device = bragg::test::device();
  device.use();
  device.launch(device.kernel("work"), device.stream());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  recording.deactivate();
  fake.set("nvml_power_mw", 100'000);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  fake.set("nvml_power_mw", 400'000);
  std::this_thread::sleep_for(std::chrono::milliseconds(40));  // until the next sample
  recording.activate();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::string capture = recording.stop_and_read();
  const std::string before = "\"power_w\":{\"samples\":";
  const size_t last = capture.rfind(before);  // META is written at the pause, too
  REQUIRE(last != std::string::npos);
  const char* samples = capture.c_str() + last + before.size();
  char* rest = nullptr;
  CHECK(std::strtoul(samples, &rest, 10) >= 8);
  CHECK(std::string(rest).starts_with(R"(,"mean":400,"least":400,"most":400})"));
}

TEST(telemetry_counts_all_of_its_time_within_nvml) {
  bragg::TelemetryCost cost;
  const int64_t since_ns = bragg::monotonic_ns();
  cost.limit_since(since_ns, cost.taken_ns());
  cost.within_nvml([] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
  CHECK(cost.nvml_ns() >= 5'000'000);
  CHECK(cost.taken_ns() >= cost.nvml_ns());
  CHECK(cost.affordable_ns() >= since_ns + 5 * kSecondNs);  // 0.1 %
  cost.limit_since(since_ns, cost.taken_ns());
  CHECK(cost.affordable_ns() < since_ns + kSecondNs);
}

void launch_work() {
  const bragg::test::Device& device = bragg::test::device();
  device.use();
  device.launch(device.kernel("work"), device.stream());
}

struct Thrifty {
  uint64_t samples, span_ns;
};

// What a session that did not ask for telemetry says of it.
Thrifty telemetry_of_run(const char* after_s, std::chrono::milliseconds lasts, const std::function<void()>& program) {
  setenv("BRAGG_TELEMETRY_AFTER_S", after_s, 1);
  bragg::test::Recording recording("thrifty", {.telemetry_hz = BRAGG_TELEMETRY_THRIFTY});
  program();
  std::this_thread::sleep_for(lasts);
  unsetenv("BRAGG_TELEMETRY_AFTER_S");
  const std::vector<uint64_t> found = recording.stop_and_find({R"(driver":"580.82.07","samples)", "span_ns"});
  return {.samples = found[0], .span_ns = found[1]};
}

// Of a run that is long enough for it, however busy the machine is.
Thrifty telemetry_of_long_run(std::chrono::milliseconds lasts) {
  Thrifty told{};
  for (; told.samples == 0 && lasts < std::chrono::seconds(30); lasts *= 2)
    told = telemetry_of_run("0", lasts, launch_work);
  return told;
}

constexpr std::chrono::milliseconds kShortRun(100);

TEST(telemetry_that_nobody_asked_for_comes_to_long_runs_alone) {
  const FakeNvml fake;
  CHECK(telemetry_of_long_run(kShortRun).samples > 0);
  CHECK_EQ(telemetry_of_run("3600", kShortRun, launch_work).samples, 0);
}

TEST(telemetry_that_nobody_asked_for_does_not_come_by_launches_before_its_session) {
  const FakeNvml fake;
  {
    const bragg::test::Recording earlier("earlier");
    launch_work();
  }
  CHECK_EQ(telemetry_of_run("0", kShortRun, [] {}).samples, 0);
}

TEST(telemetry_that_nobody_asked_for_waits_until_it_is_affordable) {
  const FakeNvml fake;
  fake.set("nvml_slow_ms", 1);  // a call; a sample takes several, so that two within a second are more than 0.1 %
  const Thrifty told = telemetry_of_long_run(std::chrono::milliseconds(1300));  // it is told once a second
  fake.set("nvml_slow_ms", 0);
  CHECK(told.samples >= 1);
  CHECK((told.samples - 1) * kSecondNs <= told.span_ns);
}

}  // namespace

TEST(a_thousand_starts_and_stops_of_telemetry_and_counters_leave_nothing_behind) {
  const auto count = [](const char* directory) {
    return std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator());
  };
  bragg::test::device().use();
  const auto stream = bragg::test::device().stream();
  const auto kernel = bragg::test::device().kernel("copy");
  ptrdiff_t files = 0, threads = 0;
  for (int number = 0; number < 1000; ++number) {
    {
      const bragg::test::Recording recording("again", {.telemetry_hz = 10, .counters = "dram"});
      recording.activate();
      bragg::test::device().launch(kernel, stream);
    }
    if (number == 10) files = count("/proc/self/fd"), threads = count("/proc/self/task");
  }
  CHECK(bragg::test::comes_true([&] { return count("/proc/self/fd") <= files; }));
  CHECK(bragg::test::comes_true([&] { return count("/proc/self/task") <= threads; }));
}
