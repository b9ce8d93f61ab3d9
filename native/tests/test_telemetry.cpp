// Telemetry of the host from files as the system writes them; sums, turns, and readings that processes share.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "backends/telemetry/gpu_reading.h"
#include "backends/telemetry/host_telemetry.h"
#include "backends/telemetry/rate.h"
#include "backends/telemetry/reading_turns.h"
#include "backends/telemetry/shared_gpu.h"
#include "backends/telemetry/telemetry_sums.h"
#include "check.h"
#include "scratch.h"

namespace {

using namespace bragg::host_quantity;
using bragg::test::ScratchDirectory;

constexpr int64_t kSecondNs = 1'000'000'000;

bool is_near(double value, double expected) { return std::abs(value - expected) <= 1e-6 * std::abs(expected) + 1e-9; }

bool is_socket(int number) {
  struct stat found{};
  return fstat(number, &found) == 0 && S_ISSOCK(found.st_mode);
}

// /proc/self and /sys/fs/cgroup, in a directory.
class System {
 public:
  void write(const std::string& name, const std::string& content) {
    const std::filesystem::path path = directory_.file(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }
  [[nodiscard]] bragg::HostTelemetry telemetry() {
    return bragg::HostTelemetry(directory_.file("proc"), directory_.file("cgroup"));
  }

  // `name` as the program chose it.
  void write_stat(const std::string& name, uint64_t ticks, uint64_t minor_faults) {
    write("proc/stat", "42 (" + name + ") R 1 42 42 0 -1 4194304 " + std::to_string(minor_faults) + " 0 3 0 " +
                           std::to_string(ticks) + " 0 0 0 20 0 9 0 1234 999999 256 18446744073709551615 1 1\n");
  }

 private:
  ScratchDirectory directory_;
};

TEST(telemetry_of_the_host_is_that_of_the_process_and_its_cgroup) {
  System system;
  const auto ticks_per_s = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  system.write("proc/cgroup", "1:cpu:/old\n0::/job/7\n");
  system.write("cgroup/job/7/memory.current", "4096000\n");
  system.write("cgroup/job/7/cpu.stat", "usage_usec 9\nnr_throttled 1\nthrottled_usec 1000000\n");
  system.write("proc/io", "rchar: 1\nwchar: 1\nread_bytes: 1000\nwrite_bytes: 0\n");
  system.write("proc/net/dev",
               "Inter-|   Receive  | Transmit\n face |bytes packets\n    lo: 9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n"
               "  eth0:100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n");
  system.write_stat("a ) R b", 0, 10);
  bragg::HostTelemetry host = system.telemetry();
  const auto first = host.read(kSecondNs).values;
  CHECK(std::isnan(first[kCpu]));  // nothing before it
  CHECK(is_near(first[kResident], 256 * page_bytes));
  CHECK(is_near(first[kGroupMemory], 4096000));
  system.write("cgroup/job/7/cpu.stat", "usage_usec 9\nnr_throttled 1\nthrottled_usec 1500000\n");
  system.write("proc/io", "read_bytes: 3000\nwrite_bytes: 500\n");
  system.write("proc/net/dev", "eth0: 1100 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n");
  system.write_stat("a ) R b", 2 * ticks_per_s, 30);
  const auto second = host.read(2 * kSecondNs).values;
  CHECK(is_near(second[kCpu], 200));
  CHECK(is_near(second[kMinorFaults], 20));
  CHECK(is_near(second[kMajorFaults], 0));
  CHECK(is_near(second[kDiskRead], 2000));
  CHECK(is_near(second[kDiskWritten], 500));
  CHECK(is_near(second[kNetworkReceived], 1000));
  CHECK(is_near(second[kNetworkSent], 300));
  CHECK(is_near(second[kGroupThrottled], 50));
  const auto soon = host.read(2 * kSecondNs + kSecondNs / 10).values;
  CHECK(is_near(soon[kCpu], 0));
  for (const size_t seldom : {kDiskRead, kNetworkSent, kGroupMemory}) CHECK(std::isnan(soon[seldom]));
}

TEST(telemetry_of_a_host_that_tells_nothing_has_no_readings) {
  System system;
  for (const double value : system.telemetry().read(kSecondNs).values) CHECK(std::isnan(value));
  system.write("proc/cgroup", "0::/\n");
  system.write("proc/stat", "42 (no end");
  system.write("proc/io", "read_bytes: -1\nwrite_bytes:");
  system.write("proc/net/dev", "eth0: 1\n::::\n\n");
  system.write("cgroup/memory.current", "max\n");
  bragg::HostTelemetry host = system.telemetry();
  for (int second = 1; second <= 2; ++second)
    for (const double value : host.read(second * kSecondNs).values) CHECK(std::isnan(value));
}

TEST(a_counter_that_goes_back_has_no_rate) {
  bragg::Rate rate;
  CHECK(std::isnan(rate.per_second(100, kSecondNs)));
  CHECK(is_near(rate.per_second(300, 2 * kSecondNs), 200));
  CHECK(std::isnan(rate.per_second(10, 3 * kSecondNs)));
  CHECK(is_near(rate.per_second(20, 4 * kSecondNs), 10));
  CHECK(std::isnan(rate.per_second(30, 4 * kSecondNs)));
}

TEST(energy_counts_between_borders_alone) {
  bragg::EnergySum energy;
  energy.border({{1000, 1}}, true);
  energy.border({{1500, 11}}, false);  // paused
  energy.border({{9000, 21}}, true);
  energy.border({{9100, 31}}, true);
  CHECK_EQ(energy.millijoules(), 600u);
  CHECK_EQ(energy.span_ns(), 20);
  energy.border({{50, 41}}, true);  // the driver was loaded again
  energy.border({{60, 51}}, true);
  CHECK_EQ(energy.millijoules(), 610u);
  energy.border({}, true);  // no answer
  energy.border({{70, 61}}, false);
  CHECK_EQ(energy.millijoules(), 610u);
}

TEST(values_without_a_sample_are_not_described) {
  bragg::GpuSums sums;
  bragg::JsonObject none;
  sums.describe(none);
  CHECK_EQ(none.text(), std::string("{}"));
  bragg::GpuReading reading;
  reading.values[bragg::gpu_quantity::kPower] = 100;
  reading.clock_reasons = bragg::nvml::reason::kPowerCap;
  sums.add(reading);
  reading.values[bragg::gpu_quantity::kPower] = 200;
  reading.clock_reasons = 0;
  sums.add(reading);
  bragg::JsonObject json;
  sums.describe(json);
  CHECK_EQ(json.text(), std::string("{\"power_w\":{\"samples\":2,\"mean\":150,\"least\":100,\"most\":200},"
                                    "\"clock_reasons\":{\"samples\":2,\"power\":1}}"));
}

// How often each of several readings is due in so many samples.
template <size_t count>
std::array<int, count> turns_of(const std::array<double, count>& weights, const std::array<int64_t, count>& costs_ns,
                                int64_t budget_ns, int samples) {
  bragg::ReadingTurns<count> turns(weights);
  std::array<int, count> made{};
  for (int sample = 0; sample < samples; ++sample) {
    turns.begin_sample(budget_ns);
    for (size_t i = 0; i < count; ++i) {
      if (!turns.is_due(i)) continue;
      ++made[i];
      turns.note(i, costs_ns[i]);
    }
  }
  return made;
}

TEST(readings_that_take_long_are_made_less_often) {
  CHECK((turns_of<3>({1, 1, 1}, {3'000, 2'000, 1'000}, 10'000, 100) == std::array{100, 100, 100}));
  // The cheap one leaves 8 us to the others, by their weights.
  CHECK((turns_of<3>({1, 1, 3}, {2'000, 8'000, 8'000}, 10'000, 122) == std::array{122, 32, 62}));
  const auto dear = turns_of<2>({1, 1}, {500'000, 70'000}, 25'000, 1'001);
  CHECK(dear[0] * 500 + dear[1] * 70 <= 27 * 1'000);  // us, with the first two samples
  CHECK((dear == std::array{26, 168}));
}

TEST(a_reading_that_takes_very_long_once_is_not_put_off_for_ever) {
  bragg::ReadingTurns<1> turns({1});
  int made = 0;
  const auto sample = [&](int64_t cost_ns) {
    turns.begin_sample(10'000);
    if (!turns.is_due(0)) return;
    ++made;
    turns.note(0, cost_ns);
  };
  sample(20'000'000);  // the driver makes ready
  for (int i = 0; i < 9; ++i) sample(5'000);
  CHECK_EQ(made, 10);
  sample(20'000'000);  // and something else had the machine
  for (int i = 0; i < 10; ++i) sample(5'000);
  CHECK_EQ(made, 21);
}

TEST(one_process_samples_a_gpu_and_others_take_its_readings) {
  const std::string uuid = "test-" + std::to_string(getpid());
  auto sampling = std::make_unique<bragg::SharedGpu>(uuid);
  bragg::SharedGpu other(uuid), third(uuid);
  CHECK(sampling->claim(1) && sampling->claim(2));
  CHECK(!other.claim(2) && !third.claim(2));
  CHECK_EQ(other.sampler(), getpid());
  CHECK_EQ(sampling->sampler(), 0);
  bragg::GpuReading reading;
  reading.values[bragg::gpu_quantity::kPower] = 321;
  sampling->publish({{3, reading}});
  reading.clock_reasons = 4;
  sampling->publish({{4, reading}});
  for (bragg::SharedGpu* each : {&other, &third}) {
    const auto readings = each->receive(5);
    REQUIRE(readings.size() == 2);
    CHECK_EQ(readings[0].monotonic_ns, 3);
    CHECK_EQ(readings[1].reading.values[bragg::gpu_quantity::kPower], 321);
    CHECK(!readings[0].reading.clock_reasons && readings[1].reading.clock_reasons == 4u);
  }
  CHECK(!other.claim(6));
  sampling.reset();
  CHECK(other.receive(7).empty() && third.receive(7).empty());
  CHECK(other.claim(7) && !third.claim(7));  // the first to ask
  CHECK_EQ(other.sampler(), 0);
  CHECK(!third.claim(5 * kSecondNs));
  CHECK(third.claim(6 * kSecondNs));  // the other one says nothing
}

TEST(readings_of_a_gpu_do_not_reach_the_program_s_own_sockets) {
  const std::string uuid = "closed-" + std::to_string(getpid());
  const int lowest = dup(STDOUT_FILENO);
  close(lowest);
  bragg::SharedGpu sampling(uuid), other(uuid);
  CHECK(sampling.claim(1) && !other.claim(1));
  sampling.publish({{2, {}}});  // accepts the other one
  CHECK_EQ(other.receive(3).size(), 1);
  int theirs[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, theirs) == 0);
  CHECK_EQ(theirs[0], lowest);
  std::vector<int> taken;
  for (int number = theirs[1] + 1; number < 1024; ++number)
    if (fcntl(number, F_GETFD) >= 0 && is_socket(number)) taken.push_back(dup2(theirs[0], number));
  CHECK(taken.size() >= 3);  // who listens, and both ends
  sampling.publish({{4, {}}});
  CHECK(other.receive(5).empty());
  char byte;
  CHECK_EQ(recv(theirs[1], &byte, 1, 0), -1);
  sampling.release();
  other.release();
  for (const int number : taken) CHECK_EQ(close(number), 0);
  close(theirs[0]);
  close(theirs[1]);
}

TEST(a_forked_child_keeps_no_gpu_from_others) {
  const std::string uuid = "fork-" + std::to_string(getpid());
  auto sampling = std::make_unique<bragg::SharedGpu>(uuid);
  REQUIRE(sampling->claim(1));
  const pid_t child = fork();
  if (child == 0) {
    bragg::SharedGpu::close_all_after_fork();
    pause();
    _exit(0);
  }
  sampling.reset();
  bragg::SharedGpu other(uuid);
  CHECK(bragg::test::comes_true([&] {
    (void)other.receive(1);
    return other.claim(1) && other.sampler() == 0;
  }));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
