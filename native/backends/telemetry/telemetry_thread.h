// The thread that samples, and what it shares with the others.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/telemetry/telemetry_sums.h"
#include "backends/threaded_source.h"

namespace bragg {

struct TelemetryPoint {
  uint32_t device;  // kNone: the host
  uint32_t row;     // of the table of quantities; beyond it of that of reasons
  int64_t time_ns;
  double value;
};

struct Telemetry : SharedPoints<TelemetryPoint> {
  int64_t interval_ns = 0;
  bool is_thrifty = true;      // nobody has asked for it: what it takes is limited, and energy is not read
  int64_t works_since_ns = 0;  // of the monotonic clock: what counts for the limit; 0: from the first sample on
  bool is_collecting = true;
  std::vector<int64_t> switched_ns;  // when it no longer was, when it was again, and so on; of the last seconds
  uint64_t wanted_borders = 0;       // the thread has work there when they are more than `done_borders`
  uint64_t done_borders = 0;
  bool wants_energy = false;             // at one of them
  std::map<uint32_t, PhaseSums> phases;  // by slot
  // Of the source, JSON.
  std::string facts = "{}";
  std::map<uint32_t, std::string> gpu_facts;

  // Lock held. Of the phases that continue the shortest interval, that of those that were asked for before others;
  // without one it stays.
  void choose_interval();
  [[nodiscard]] bool is_wanted() const;
  void switch_collecting(int64_t time_ns);
  // Readings come late: of some seconds ago at most.
  [[nodiscard]] bool was_collecting(int64_t time_ns) const;
};

// What the thread does.
void sample_telemetry(const std::shared_ptr<Telemetry>& telemetry);

}  // namespace bragg
