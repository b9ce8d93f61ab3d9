// Which hardware counters are sampled: what a user calls them, what releases of CUPTI call them, and what is shown.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bragg {

// How a track's value comes from those of a sample.
enum class CounterScale { AsIs, PerSecond, PercentOfSecond };  // the last: the first metric by the second, in percent

// Beside counters of multiprocessors the L2 hit rate is not a number on an H200, and beside that of L1 they are wrong,
// although CUPTI says that they fit one pass. Metrics of CUPTI by name are sampled as CUPTI says.
enum class CountedUnit { Any, Multiprocessors, L2 };

struct Counter {
  std::string track;
  std::string unit;
  CounterScale scale = CounterScale::AsIs;
  // By descending preference: names differ by chip and release. Each is one metric, or two for PercentOfSecond.
  std::vector<std::vector<std::string>> alternatives;
  // Of a node of a profile, where the launches below are counted exactly, and what is reported together with it.
  std::string metric;
  std::string group;
  CountedUnit unit_counted = CountedUnit::Any;
};

// A counter as a user names it, and the sets that it is in, ' '-separated.
struct NamedCounter {
  std::string_view name;
  std::string_view sets;
  Counter counter;
};
[[nodiscard]] const std::vector<NamedCounter>& named_counters();

// Whether both are counted rightly at a time.
[[nodiscard]] bool are_right_together(const Counter& one, const Counter& other);
// Counters by the names of sets (`default`, `dram`, `tensor`, `l2`, `units`, `nvlink`, `pcie`), of counters
// (`dram_read`), or of CUPTI's metrics, separated by commas. Every counter once.
[[nodiscard]] std::vector<Counter> counters_of(std::string_view wanted);
// The value of a track, from the metrics of its alternative.
[[nodiscard]] double counter_value(CounterScale scale, std::span<const double> metrics, double seconds);

}  // namespace bragg
