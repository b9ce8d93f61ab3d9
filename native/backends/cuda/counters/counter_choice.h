// Which counters a chip counts together in one pass.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/cuda/counters/counter_metrics.h"
#include "backends/cuda/driver/profiler_library.h"

namespace bragg {

// CUPTI's metrics of the first alternatives of counters.
[[nodiscard]] std::vector<std::string> metrics_of(const std::vector<Counter>& counters);

// Asks CUPTI how many passes metrics need together: 0.1 to 0.3 s.
using ChooseMetrics = std::function<CuptiFailure(const std::vector<std::string>& metrics, size_t& passes)>;

// `chosen`: of `wanted` those that fit one pass, each with one alternative. The last call of `choose` was for all of
// them, unless there is none.
[[nodiscard]] CuptiFailure choose_in_one_pass(const std::vector<Counter>& wanted, const ChooseMetrics& choose,
                                              std::vector<Counter>& chosen);
// Tracks of those that are wanted and not chosen.
[[nodiscard]] std::vector<std::string> left_out(const std::vector<Counter>& wanted, const std::vector<Counter>& chosen);

}  // namespace bragg
