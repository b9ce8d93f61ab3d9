#include "backends/cuda/activity_walker.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "backends/cuda/values/value_kernel.h"

namespace bragg {
namespace {

// What all records have.
template <class Record>
DeviceEvent event_of(const Record& record, DeviceEventKind kind) {
  DeviceEvent event;
  event.kind = kind;
  event.correlation = CorrelationId{record.correlation};
  event.device = record.device;
  event.context = record.context;
  event.stream = record.stream;
  event.start_ns = static_cast<int64_t>(record.start_ns);
  event.end_ns = static_cast<int64_t>(record.end_ns);
  event.graph = GraphId{record.graph};
  return event;
}

DeviceEvent from_kernel(const cupti::KernelRecord& record) {
  DeviceEvent event = event_of(record, DeviceEventKind::Kernel);
  event.graph_node = GraphNodeId{record.graph_node};
  event.name = record.name;
  event.is_own = record.name != nullptr && std::strcmp(record.name, value_kernel::kName) == 0;
  uint32_t* config = event.launch_config;
  config[0] = record.registers_per_thread;
  config[1] = static_cast<uint32_t>(record.static_shared_bytes);
  config[2] = static_cast<uint32_t>(record.dynamic_shared_bytes);
  config[3] = record.local_bytes_per_thread;
  std::copy_n(record.grid, 3, config + 4);
  std::copy_n(record.block, 3, config + 7);
  std::copy_n(record.cluster, 3, config + 10);
  return event;
}

template <class Record>
DeviceEvent from_memory(const Record& record, DeviceEventKind kind) {
  DeviceEvent event = event_of(record, kind);
  event.graph_node = GraphNodeId{record.graph_node};
  event.bytes = record.size_bytes;
  return event;
}

CopyKind kind_of(cupti::CopyKind kind) {
  constexpr CopyKind kKinds[] = {CopyKind::Unknown, CopyKind::HtoD, CopyKind::DtoH, CopyKind::HtoA,
                                 CopyKind::AtoH,    CopyKind::AtoA, CopyKind::AtoD, CopyKind::DtoA,
                                 CopyKind::DtoD,    CopyKind::HtoH, CopyKind::PtoP};
  const auto number = static_cast<size_t>(kind);
  return number < std::size(kKinds) ? kKinds[number] : CopyKind::Unknown;
}

template <class Record>
DeviceEvent from_copy(const Record& record) {
  DeviceEvent event = from_memory(record, DeviceEventKind::Copy);
  event.copy_kind = kind_of(record.copy_kind);
  event.holds_host =
      record.copy_kind == cupti::CopyKind::DeviceToHost && record.destination_kind == cupti::MemoryKind::Pageable;
  return event;
}

DeviceEvent from_graph(const cupti::GraphTraceRecord& record) {
  DeviceEvent event = event_of(record, DeviceEventKind::Graph);
  event.name = "cuda graph";
  return event;
}

template <class Record>
const Record& as(const uint8_t* at) {
  return *reinterpret_cast<const Record*>(at);
}

void take_record(const uint8_t* at, cupti::Kind kind, const std::function<void(const DeviceEvent&)>& take) {
  switch (kind) {
    case cupti::Kind::Kernel:
    case cupti::Kind::ConcurrentKernel:
      return take(from_kernel(as<cupti::KernelRecord>(at)));
    case cupti::Kind::Memcpy:
      return take(from_copy(as<cupti::MemcpyRecord>(at)));
    case cupti::Kind::PeerMemcpy:
      return take(from_copy(as<cupti::PeerMemcpyRecord>(at)));
    case cupti::Kind::Memset:
      return take(from_memory(as<cupti::MemsetRecord>(at), DeviceEventKind::Set));
    case cupti::Kind::GraphTrace:
      return take(from_graph(as<cupti::GraphTraceRecord>(at)));
    default:
      return;
  }
}

// Bytes of the record at `at` by CUPTI's own account; 0: it does not know the kind either.
size_t size_by_cupti(uint8_t* buffer, size_t valid_bytes, size_t at, const NextRecord& next_record) {
  if (!next_record) return 0;
  void* record = buffer + at;
  const cupti::Result result = next_record(buffer, valid_bytes, &record);
  if (result == cupti::Result::MaxLimitReached) return valid_bytes - at;  // it is the last one
  const auto* next = static_cast<const uint8_t*>(record);
  return result == cupti::Result::Success && next > buffer + at ? static_cast<size_t>(next - buffer) - at : 0;
}

}  // namespace

WalkResult walk_activity(uint8_t* buffer, size_t valid_bytes, uint32_t cupti_version, const NextRecord& next_record,
                         const std::function<void(const DeviceEvent&)>& take) {
  WalkResult result;
  size_t at = 0;
  while (at + sizeof(cupti::Kind) <= valid_bytes) {
    cupti::Kind kind;
    std::memcpy(&kind, buffer + at, sizeof kind);
    size_t size = cupti::record_size(kind, cupti_version);
    if (size == 0) {
      size = size_by_cupti(buffer, valid_bytes, at, next_record);
      if (cupti::is_read(kind) && size < cupti::record_size(kind, cupti::kFirstVersion)) size = 0;  // cut off
      result.foreign_records += size != 0 && !cupti::is_read(kind);
    }
    if (size == 0 || at + size > valid_bytes) break;
    take_record(buffer + at, kind, take);
    ++result.records;
    at += size;
  }
  result.unread_bytes = valid_bytes - at;
  return result;
}

}  // namespace bragg
