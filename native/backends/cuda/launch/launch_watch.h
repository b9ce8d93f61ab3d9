// What each launch asks of the process, in one cache line: between two launches PyTorch and the driver run so much that
// most of ours has left the caches.
#pragma once

#include <atomic>
#include <cstdint>

#include "context/recording_state.h"

namespace bragg {

class ThreadContext;

namespace cuda_backend {

struct alignas(64) LaunchWatch {
  std::atomic<bool> samples_instructions{false};
  std::atomic<bool> counts_launches{false};
  std::atomic<bool> traces_graphs{false};          // whole graphs are recorded at this moment
  std::atomic<ApiLevel> api_level{ApiLevel::Off};  // calls that are followed
  std::atomic<uint32_t> context_changes{0};        // the driver reuses handles: what threads remember is then stale
  std::atomic<const ThreadContext*> counting{nullptr};  // counts a launch, or ends counting
};

inline constinit LaunchWatch launch_watch;

}  // namespace cuda_backend
}  // namespace bragg
