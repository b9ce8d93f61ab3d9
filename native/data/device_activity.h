// When the devices worked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/device_event.h"
#include "data/activity_curve.h"

namespace bragg {

struct ActivityTotals {
  std::string busy_json;  // device -> ns
  uint64_t fed_ns;        // of the device with most of it: while it worked, or a kernel that waited there was to begin
};

// The union of the intervals, so what runs side by side on several streams counts once.
// Records come in buffers of one thread each, seconds out of order, so intervals wait until all that began before them
// has come.
class DeviceActivity {
 public:
  void add(const DeviceEvent& event);
  [[nodiscard]] ActivityTotals totals() const;
  [[nodiscard]] std::string curves_json() const;                // device -> its curve; empty: nothing ran
  [[nodiscard]] int64_t first_ns() const { return first_ns_; }  // 0: nothing ran
  [[nodiscard]] int64_t last_ns() const { return last_ns_; }

 private:
  struct Interval {
    int64_t start_ns;
    int64_t end_ns;
  };
  struct Device {
    std::vector<Interval> waiting;
    int64_t until_ns = 0;
    uint64_t busy_ns = 0;
    uint64_t short_gaps_ns = 0;
    ActivityCurve curve;
    void settle(int64_t before_ns);  // takes the waiting intervals that started before
  };
  std::map<uint32_t, Device> devices_;
  int64_t first_ns_ = 0;
  int64_t last_ns_ = 0;
};

}  // namespace bragg
