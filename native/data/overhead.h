// How much longer the program takes because it is recorded: what META says of it, for readers to add up.
#pragma once

#include <cstdint>
#include <string>

#include "context/own_cost.h"

namespace bragg {

class Phase;
struct ThreadTotals;

// What a call costs the program outside of the core, for example in PyTorch because there are observers. It was
// measured in this process before recording; 0: it was not. Threads: any.
void set_cost_beside(CostPart part, uint32_t ns_per_call) noexcept;

// A flat table of numbers, so that phases add up. `gpu_fed_ns`: see ActivityTotals.
[[nodiscard]] std::string overhead_json(const Phase& phase, const ThreadTotals& now, uint64_t gpu_fed_ns);

}  // namespace bragg
