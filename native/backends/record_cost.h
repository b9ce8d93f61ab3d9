// What records of kernels, copies and sets cost that a source of the GPU's vendor makes; no source tells it itself.
#pragma once

#include <cstdint>

namespace bragg {

// CUPTI on an H200: 410 to 480 ns more for each launch of a loop of them; for each kernel of a GPU that has more work
// waiting 125 to 164 ns in training of GPT-2, 197 ns in a graph of small kernels (benchmarks/results/h200*.json).
inline constexpr uint64_t kLaunchRecordNs = 450;
inline constexpr uint64_t kGpuRecordNs = 170;

}  // namespace bragg
