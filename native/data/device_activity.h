// When the devices worked, and what they waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/device_event.h"
#include "data/activity_curve.h"
#include "data/idle_fold.h"

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
  explicit DeviceActivity(bool folds_idle = true) : folds_idle_(folds_idle) {}
  void add(const DeviceEvent& event, const LaunchMoment& launch = {});
  // What a thread was in: a scope, an operator or a call; `is_launch`: one that launches, and `node` is its caller.
  void note_host(uint32_t thread, int64_t start_ns, int64_t end_ns, NodeId node, bool is_launch = false) {
    if (folds_idle_) idle_.note_host(thread, start_ns, end_ns, node, is_launch);
  }
  void settle();                                  // what is complete: now and then
  void settle_all();                              // at the end
  [[nodiscard]] ActivityTotals totals();          // with what is not settled yet
  [[nodiscard]] std::string curves_json() const;  // device -> its curve, of what is settled; empty: nothing ran
  [[nodiscard]] IdleTable& idle() { return idle_.table(); }
  [[nodiscard]] size_t host_spans() const { return idle_.host_spans(); }  // kept for pauses to come
  [[nodiscard]] int64_t first_ns() const { return first_ns_; }            // 0: nothing ran
  [[nodiscard]] int64_t last_ns() const { return last_ns_; }

 private:
  struct Interval {
    int64_t start_ns;
    int64_t end_ns;
    LaunchMoment launch;
    uint32_t queue;
  };
  struct Sums {
    int64_t until_ns = 0;
    uint64_t busy_ns = 0;
    uint64_t short_gaps_ns = 0;

    [[nodiscard]] int64_t add(const Interval& interval);  // when it began to count; its end: not at all
  };
  struct Device {
    std::vector<Interval> waiting;
    size_t n_sorted = 0;  // of these, the first ones
    Sums sums;
    uint32_t last_queue = 0;  // of the work that has lasted longest
    ActivityCurve curve;
    void sort();
    void settle(int64_t before_ns, std::vector<Pause>& pauses);  // takes the waiting intervals that started before
  };
  void settle_device(uint32_t id, Device& device, int64_t before_ns);
  void forget_host();

  std::map<uint32_t, Device> devices_;
  Device* last_device_ = nullptr;  // that a record came of
  uint32_t last_device_id_ = 0;
  IdleFold idle_;
  bool folds_idle_;
  int64_t first_ns_ = 0;
  int64_t last_ns_ = 0;
};

}  // namespace bragg
