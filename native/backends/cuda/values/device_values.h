// Metric values that live in GPU memory: read where they are, when the stream gets there, and collected later.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/driver/cuda_abi.h"
#include "backends/device_values.h"
#include "context/metric_names.h"

namespace bragg::device_values {

inline constexpr uint32_t kMaxLength = 4096;

// Adds an array to a metric at this thread's context: a kernel of ours, put on `stream`, reads it there. Nothing waits
// for the stream or the device, and memory that is freed in the order of the stream may be freed at once. In a stream
// that is being captured the kernel becomes a node of the graph, and each replay reads the array again. Returns why it
// was not done, "" if it was or if nothing records. Threads: any.
[[nodiscard]] std::string add(MetricId metric, const DeviceArray& array, cuda::Stream stream) noexcept;

// Whether a value was ever captured into a graph. Threads: any.
[[nodiscard]] bool any_captured() noexcept;

// The values that have come since the last call, in the order of each stream. Threads: consumer.
[[nodiscard]] std::vector<ArrivedValue> take_arrived();
// Values that are on their way. Threads: any.
[[nodiscard]] uint64_t awaited();

void lock_for_fork();
void unlock_after_fork();
void after_fork_in_child();  // it has neither CUDA nor the pinned memory

}  // namespace bragg::device_values
