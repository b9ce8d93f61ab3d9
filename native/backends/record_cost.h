// What it costs the program that the GPU's vendor makes records of kernels, copies and sets. No source reports it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "context/own_cost.h"

namespace bragg {

// CUPTI on an H200: 410 to 480 ns more for each launch of a loop of them; for each kernel of a GPU that has more work
// waiting 125 to 164 ns in training of GPT-2, 197 ns in a graph of small kernels (benchmarks/results/h200*.json).
inline constexpr double kLaunchRecordNs = 450;
inline constexpr uint64_t kGpuRecordNs = 170;

// In a real program CUPTI's code and data have left the caches between two launches: 1.2 to 1.9 us on an H100
// (benchmarks/results/h100-real-programs.json). So have ours, whose time at a launch is measured: both grow alike. The
// walk over frames is left out: it grows with their number.
// Ours took 21 ns in a loop of C++ on the tests' driver, 85 in one of Python on an H100, 100 to 148 in those programs;
// they take a fifth less since what a launch needs lies in few cache lines.
inline constexpr double kHotLaunchNs = 32;
inline constexpr double kColdest = 4;

// `launches`: what our part of them has cost.
[[nodiscard]] inline uint64_t launch_record_ns(const CostTotals::Part& launches) {
  const uint64_t calls = launches.calls();
  const uint64_t ns = launches.ns() - std::min(launches.ns_apart(), launches.ns());
  const double own_ns = calls == 0 ? kHotLaunchNs : static_cast<double>(ns) / static_cast<double>(calls);
  return static_cast<uint64_t>(kLaunchRecordNs * std::clamp(own_ns / kHotLaunchNs, 1.0, kColdest));
}

}  // namespace bragg
