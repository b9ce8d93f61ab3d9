// Reads a buffer of CUPTI activity records of any known version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "backends/cuda/driver/cupti_abi.h"
#include "backends/device_event.h"

namespace bragg {

struct WalkResult {
  size_t records = 0;
  size_t unread_bytes = 0;  // behind a record whose size is not known
};

// Calls `take` for every kernel, copy and set; skips other kinds. `next_record` is asked for strides the size table
// does not have (newer versions); nullptr: the walk ends there and says how much was left. Threads: any. Reads only
// [buffer, buffer + valid_bytes).
WalkResult walk_activity(uint8_t* buffer, size_t valid_bytes, uint32_t cupti_version,
                         cupti::CuptiActivityGetNextRecord* next_record,
                         const std::function<void(const DeviceEvent&)>& take);

}  // namespace bragg
