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
  size_t foreign_records = 0;  // of kinds that the size table does not have: somebody else asked for them
  size_t unread_bytes = 0;     // behind a record whose size CUPTI does not know either
};

// Given a record, the one behind it: cuptiActivityGetNextRecord of the subscription that the buffer belongs to.
using NextRecord = std::function<cupti::Result(uint8_t* buffer, size_t valid_bytes, void** record)>;

// Calls `take` for every kernel, copy and set; skips other kinds. `next_record` tells the sizes that the table does not
// have: of other kinds and of newer versions. Empty: the walk ends there and says how much was left. Threads: any.
// Reads only [buffer, buffer + valid_bytes).
WalkResult walk_activity(uint8_t* buffer, size_t valid_bytes, uint32_t cupti_version, const NextRecord& next_record,
                         const std::function<void(const DeviceEvent&)>& take);

}  // namespace bragg
