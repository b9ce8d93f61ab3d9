// Activity records as views over the part every CUPTI from 12.0 on shares: fields are only ever appended, so a view's
// offsets hold for all versions and `record_size` gives the stride of one. Records are 8-byte aligned in their buffer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bragg::cupti {

enum class Kind : uint32_t {
  Invalid = 0,
  Memcpy = 1,
  Memset = 2,
  Kernel = 3,  // serializes kernels; its record is the one of ConcurrentKernel
  Driver = 4,
  Runtime = 5,
  ConcurrentKernel = 10,
  Overhead = 17,
  PeerMemcpy = 22,
  Synchronization = 38,
  ExternalCorrelation = 39,
  GraphTrace = 51,
  DeviceGraphTrace = 53,
};

enum class CopyKind : uint8_t {
  Unknown = 0,
  HostToDevice = 1,
  DeviceToHost = 2,
  HostToArray = 3,
  ArrayToHost = 4,
  ArrayToArray = 5,
  ArrayToDevice = 6,
  DeviceToArray = 7,
  DeviceToDevice = 8,
  HostToHost = 9,
  PeerToPeer = 10,
};

enum class MemoryKind : uint8_t {
  Unknown = 0,
  Pageable = 1,
  Pinned = 2,
  Device = 3,
  Array = 4,
  Managed = 5,
  DeviceStatic = 6,
  ManagedStatic = 7,
};

// CLOCK_REALTIME nanoseconds. 0 as start or end: not known (not finished at a forced flush, or lost).
inline constexpr uint64_t kTimestampUnknown = 0;

struct KernelRecord {
  Kind kind;
  uint8_t cache_config;
  uint8_t shared_memory_config;
  uint16_t registers_per_thread;
  uint32_t partitioned_cache[2];
  uint64_t start_ns;
  uint64_t end_ns;
  uint64_t completed_ns;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  int32_t grid[3];
  int32_t block[3];
  int32_t static_shared_bytes;
  int32_t dynamic_shared_bytes;
  uint32_t local_bytes_per_thread;
  uint32_t local_bytes_total_32;  // cut off; see local_bytes_total
  uint32_t correlation;
  int64_t grid_id;
  const char* name;  // mangled; one string for all records of the kernel
  void* reserved;
  uint64_t queued_ns;     // 0 unless latency timestamps are on
  uint64_t submitted_ns;  // 0 unless latency timestamps are on
  uint8_t launch_type;
  uint8_t carveout_requested;
  uint8_t carveout_percent;
  uint8_t padding;
  uint32_t shared_bytes_executed;
  uint64_t graph_node;  // 0: not from a graph; else executable graph id << 32 | node id
  uint32_t shared_memory_limit_config;
  uint32_t graph;  // id of the executable graph; 0: none
  void* access_policy_window;
  uint32_t channel;
  uint32_t channel_type;
  uint32_t cluster[3];  // 0: launched without clusters
  uint32_t cluster_scheduling_policy;
  uint64_t local_bytes_total;
  uint32_t max_potential_cluster_size;
  uint32_t max_active_clusters;
};
static_assert(sizeof(KernelRecord) == 208 && offsetof(KernelRecord, start_ns) == 16);
static_assert(offsetof(KernelRecord, device) == 40 && offsetof(KernelRecord, grid) == 52);
static_assert(offsetof(KernelRecord, block) == 64 && offsetof(KernelRecord, correlation) == 92);
static_assert(offsetof(KernelRecord, name) == 104 && offsetof(KernelRecord, queued_ns) == 120);
static_assert(offsetof(KernelRecord, graph_node) == 144 && offsetof(KernelRecord, graph) == 156);
static_assert(offsetof(KernelRecord, cluster) == 176 && offsetof(KernelRecord, local_bytes_total) == 192);

struct MemcpyRecord {
  Kind kind;
  CopyKind copy_kind;
  MemoryKind source_kind;
  MemoryKind destination_kind;
  uint8_t flags;  // 1: asynchronous
  uint64_t size_bytes;
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  uint32_t runtime_correlation;
  uint32_t padding;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel;
  uint32_t channel_type;
  uint8_t device_launched;  // from 13.0
  uint8_t padding_2[3];
};
static_assert(sizeof(MemcpyRecord) == 88 && offsetof(MemcpyRecord, size_bytes) == 8);
static_assert(offsetof(MemcpyRecord, device) == 32 && offsetof(MemcpyRecord, correlation) == 44);
static_assert(offsetof(MemcpyRecord, graph_node) == 64 && offsetof(MemcpyRecord, channel) == 76);

// A copy between devices (kind PeerMemcpy) has its own layout.
struct PeerMemcpyRecord {
  Kind kind;
  CopyKind copy_kind;
  MemoryKind source_kind;
  MemoryKind destination_kind;
  uint8_t flags;
  uint64_t size_bytes;
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t source_device;
  uint32_t source_context;
  uint32_t destination_device;
  uint32_t destination_context;
  uint32_t correlation;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel;
  uint32_t channel_type;
  uint32_t padding;
};
static_assert(sizeof(PeerMemcpyRecord) == 96 && offsetof(PeerMemcpyRecord, source_device) == 44);
static_assert(offsetof(PeerMemcpyRecord, correlation) == 60 && offsetof(PeerMemcpyRecord, graph_node) == 72);

struct MemsetRecord {
  Kind kind;
  uint32_t value;
  uint64_t size_bytes;
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  uint16_t flags;
  uint16_t memory_kind;
  uint32_t padding;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel;
  uint32_t channel_type;
  uint8_t device_launched;
  uint8_t padding_2[3];
};
static_assert(sizeof(MemsetRecord) == 88 && offsetof(MemsetRecord, size_bytes) == 8);
static_assert(offsetof(MemsetRecord, device) == 32 && offsetof(MemsetRecord, correlation) == 44);
static_assert(offsetof(MemsetRecord, graph_node) == 64 && offsetof(MemsetRecord, graph) == 72);

// One launch of a whole graph; replaces the records of its nodes.
struct GraphTraceRecord {
  Kind kind;
  uint32_t correlation;
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t device;
  uint32_t graph;
  uint32_t context;
  uint32_t stream;
  void* reserved;
};
static_assert(sizeof(GraphTraceRecord) == 48 && offsetof(GraphTraceRecord, device) == 24);

// A driver or runtime call on the host.
struct ApiRecord {
  Kind kind;
  uint32_t cbid;
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t process;
  uint32_t thread;  // see ThreadIdType
  uint32_t correlation;
  uint32_t return_value;
};
static_assert(sizeof(ApiRecord) == 40 && offsetof(ApiRecord, correlation) == 32);

struct ExternalCorrelationRecord {
  Kind kind;
  uint32_t external_kind;
  uint64_t external;
  uint32_t correlation;
  uint32_t reserved;
};
static_assert(sizeof(ExternalCorrelationRecord) == 24 && offsetof(ExternalCorrelationRecord, correlation) == 16);

// Whether records of this kind have a view above.
[[nodiscard]] constexpr bool is_read(Kind kind) noexcept {
  switch (kind) {
    case Kind::Kernel:
    case Kind::ConcurrentKernel:
    case Kind::Memcpy:
    case Kind::PeerMemcpy:
    case Kind::Memset:
    case Kind::GraphTrace:
    case Kind::Driver:
    case Kind::Runtime:
    case Kind::ExternalCorrelation:
      return true;
    default:
      return false;
  }
}

inline constexpr uint32_t kFirstVersion = 18;  // 12.0

// Stride of one record in bytes. `version` is what cuptiGetVersion gives: 18..28 for 12.x, xxyyzz from 130000 on.
// 0: kind or version is not known here; ask cuptiActivityGetStructSize (13.2 and later) or cuptiActivityGetNextRecord.
[[nodiscard]] constexpr size_t record_size(Kind kind, uint32_t version) noexcept {
  constexpr uint32_t first_unknown = 130600;
  if (version < kFirstVersion || version >= first_unknown) return 0;
  switch (kind) {
    case Kind::Kernel:
    case Kind::ConcurrentKernel:
      if (version >= 130400) return 248;
      if (version >= 130300) return 232;
      if (version >= 130100) return 224;
      return version >= 130000 ? 216 : 208;
    case Kind::Memcpy:
      if (version >= 130400) return 112;
      return version >= 26 ? 96 : 88;
    case Kind::Memset:
      return version >= 130400 ? 104 : 88;
    case Kind::GraphTrace:
      return version >= 21 ? 56 : 48;
    case Kind::PeerMemcpy:
      return sizeof(PeerMemcpyRecord);
    case Kind::Driver:
    case Kind::Runtime:
      return sizeof(ApiRecord);
    case Kind::ExternalCorrelation:
      return sizeof(ExternalCorrelationRecord);
    default:
      return 0;
  }
}

}  // namespace bragg::cupti
