// What the system says of this process and of its cgroup.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "backends/telemetry/quantities.h"
#include "backends/telemetry/rate.h"

namespace bragg {

struct HostReading {
  std::array<double, host_quantity::kCount> values = no_readings<host_quantity::kCount>();
};

// Threads: that of telemetry.
class HostTelemetry {
 public:
  // `proc`: /proc/self; `cgroups`: /sys/fs/cgroup, of version 2. What is not there has no reading.
  explicit HostTelemetry(std::string proc = "/proc/self", std::string cgroups = "/sys/fs/cgroup");

  // Disk, network and cgroup are read once a second, however often this is called.
  [[nodiscard]] HostReading read(int64_t time_ns);

 private:
  void read_process(HostReading& reading, int64_t time_ns);
  void read_disk(HostReading& reading, int64_t time_ns);
  void read_network(HostReading& reading, int64_t time_ns);
  void read_group(HostReading& reading, int64_t time_ns);

  std::string proc_;
  std::string group_;  // "": none of version 2
  int64_t seldom_read_ns_ = 0;
  std::array<Rate, host_quantity::kCount> rates_;
};

}  // namespace bragg
