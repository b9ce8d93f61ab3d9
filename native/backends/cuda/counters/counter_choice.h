// Which counters a chip counts together in one pass.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "backends/cuda/counters/counter_metrics.h"
#include "backends/cuda/driver/profiler_library.h"

namespace bragg {

// CUPTI's metrics of the first alternatives of counters.
[[nodiscard]] std::vector<std::string> metrics_of(const std::vector<Counter>& counters);

// How many plain metrics take as long to decode: a throughput is made of many.
[[nodiscard]] size_t decoding_weight(const std::vector<Counter>& counters);

// Asks CUPTI how many passes metrics need together: 0.1 to 0.3 s.
using ChooseMetrics = std::function<CuptiFailure(const std::vector<std::string>& metrics, size_t& passes)>;

// `chosen`: of `wanted` those that fit one pass, each with one alternative. The last call of `choose` was for all of
// them, unless there is none.
[[nodiscard]] CuptiFailure choose_in_one_pass(const std::vector<Counter>& wanted, const ChooseMetrics& choose,
                                              std::vector<Counter>& chosen);
// Takes the first counter out of `wanted`, and all that are right beside it.
[[nodiscard]] std::vector<Counter> take_together(std::vector<Counter>& wanted);
// Those of `wanted` whose track is not among the chosen ones.
[[nodiscard]] std::vector<Counter> others_than(const std::vector<Counter>& chosen, const std::vector<Counter>& wanted);
[[nodiscard]] std::vector<std::string> tracks_of(const std::vector<Counter>& counters);

}  // namespace bragg
