// Activity records as the emulated release lays them out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "link.h"

namespace bragg::fake {

// One finished record: its bytes and when the work it describes is complete.
struct RecordBytes {
  static constexpr size_t kLongest = 256;
  alignas(8) uint8_t data[kLongest];
  size_t size_bytes;
  uint64_t complete_ns;
  uint64_t lane;  // its context and stream

  template <class Record>
  [[nodiscard]] Record& as() noexcept {
    return *reinterpret_cast<Record*>(data);
  }
};

struct LatencyTimes {  // 0 unless latency timestamps are on
  uint64_t queued_ns = 0;
  uint64_t submitted_ns = 0;
};

// `kind`: Kernel or ConcurrentKernel, as it was enabled.
[[nodiscard]] RecordBytes kernel_record(const Execution& execution, cupti::Kind kind, const LatencyTimes& latency);
[[nodiscard]] RecordBytes memcpy_record(const Execution& execution);
[[nodiscard]] RecordBytes memset_record(const Execution& execution);
[[nodiscard]] RecordBytes graph_trace_record(const GraphRun& run);
[[nodiscard]] RecordBytes api_record(const ApiCall& call, uint64_t end_ns, uint32_t thread);

// A record of a kind that a tool beside bragg asked for; only cuptiActivityGetNextRecord tells its size.
inline constexpr auto kForeignKind = static_cast<cupti::Kind>(60);
[[nodiscard]] RecordBytes foreign_record();

// Bytes of a record of the emulated release; 0: it has no such kind.
[[nodiscard]] size_t size_of(cupti::Kind kind);

// Gives the end of records of unfinished work, in a buffer that is flushed by force, the value 0.
void forget_ends_after(uint64_t now_ns, uint8_t* buffer, size_t valid_bytes);

}  // namespace bragg::fake
