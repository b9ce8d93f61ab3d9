#include "cupti/records.h"

#include <unistd.h>

#include <algorithm>

#include "cupti/version.h"

namespace bragg::fake {
namespace {

constexpr uint32_t kRegistersPerThread = 32, kComputeChannel = 1, kCopyChannel = 2;
constexpr size_t kCopyCount = 88;  // where 12.8 appended the number of copies to a copy's record

template <class Record>
RecordBytes blank(cupti::Kind kind, const Span& span) {
  RecordBytes bytes{};
  bytes.size_bytes = cupti::record_size(kind, emulated_release().api_version);
  bytes.complete_ns = span.end_ns;
  auto& record = bytes.as<Record>();
  record.kind = kind;
  record.start_ns = span.start_ns;
  record.end_ns = span.end_ns;
  return bytes;
}

template <class Record>
void put_place(RecordBytes& bytes, const Place& place) {
  bytes.lane = uint64_t{place.context} << 32 | place.stream;
  auto& record = bytes.as<Record>();
  record.device = place.device;
  record.context = place.context;
  record.stream = place.stream;
}

// The tail that 13.4 appended to records of kernels, copies and sets.
void put_source(RecordBytes& bytes, const GraphOrigin& origin) {
  if (emulated_release().api_version < 130400) return;
  uint8_t* tail = bytes.data + bytes.size_bytes - 16;
  std::memcpy(tail, &origin.source_graph, sizeof origin.source_graph);
  std::memcpy(tail + 8, &origin.source_node, sizeof origin.source_node);
}

template <class Record>
void put_execution(RecordBytes& bytes, const Execution& execution, uint32_t channel_type) {
  auto& record = bytes.as<Record>();
  put_place<Record>(bytes, execution.place);
  record.correlation = execution.correlation;
  record.graph = execution.origin.graph;
  record.graph_node = execution.origin.node;
  record.channel = execution.place.stream;
  record.channel_type = channel_type;
  put_source(bytes, execution.origin);
}

}  // namespace

RecordBytes kernel_record(const Execution& execution, cupti::Kind kind, const LatencyTimes& latency) {
  RecordBytes bytes = blank<cupti::KernelRecord>(kind, execution.span);
  put_execution<cupti::KernelRecord>(bytes, execution, kComputeChannel);
  auto& record = bytes.as<cupti::KernelRecord>();
  const KernelShape& shape = execution.operation.shape;
  record.registers_per_thread = kRegistersPerThread;
  std::copy_n(shape.grid, 3, record.grid);
  std::copy_n(shape.block, 3, record.block);
  std::copy_n(shape.cluster, 3, record.cluster);
  record.dynamic_shared_bytes = static_cast<int32_t>(shape.dynamic_shared_bytes);
  record.grid_id = execution.correlation;
  record.name = execution.operation.name;
  record.queued_ns = latency.queued_ns;
  record.submitted_ns = latency.submitted_ns;
  return bytes;
}

RecordBytes memcpy_record(const Execution& execution) {
  RecordBytes bytes = blank<cupti::MemcpyRecord>(cupti::Kind::Memcpy, execution.span);
  const bool in_device = execution.operation.copy_kind == cupti::CopyKind::DeviceToDevice;
  put_execution<cupti::MemcpyRecord>(bytes, execution, in_device ? kComputeChannel : kCopyChannel);
  bytes.data[kCopyCount] = emulated_release().api_version >= 26 ? 1 : 0;
  auto& record = bytes.as<cupti::MemcpyRecord>();
  record.copy_kind = execution.operation.copy_kind;
  record.source_kind = execution.operation.source_kind;
  record.destination_kind = execution.operation.target_kind;
  record.flags = execution.operation.asynchronous ? 1 : 0;
  record.size_bytes = execution.operation.size_bytes;
  return bytes;
}

RecordBytes memset_record(const Execution& execution) {
  RecordBytes bytes = blank<cupti::MemsetRecord>(cupti::Kind::Memset, execution.span);
  put_execution<cupti::MemsetRecord>(bytes, execution, kComputeChannel);
  auto& record = bytes.as<cupti::MemsetRecord>();
  record.value = execution.operation.value;
  record.memory_kind = static_cast<uint16_t>(execution.operation.target_kind);
  record.flags = execution.operation.asynchronous ? 1 : 0;
  record.size_bytes = execution.operation.size_bytes;
  return bytes;
}

RecordBytes graph_trace_record(const GraphRun& run) {
  RecordBytes bytes = blank<cupti::GraphTraceRecord>(cupti::Kind::GraphTrace, run.span);
  auto& record = bytes.as<cupti::GraphTraceRecord>();
  put_place<cupti::GraphTraceRecord>(bytes, run.place);
  record.correlation = run.correlation;
  record.graph = run.graph;
  return bytes;
}

RecordBytes api_record(const ApiCall& call, uint64_t end_ns, uint32_t thread) {
  RecordBytes bytes = blank<cupti::ApiRecord>(cupti::Kind::Driver, {call.start_ns, end_ns});
  auto& record = bytes.as<cupti::ApiRecord>();
  record.cbid = call.cbid;
  record.process = static_cast<uint32_t>(getpid());
  record.thread = thread;
  record.correlation = call.correlation;
  record.return_value = static_cast<uint32_t>(call.result);
  return bytes;
}

RecordBytes foreign_record() {
  RecordBytes bytes{};
  bytes.size_bytes = size_of(kForeignKind);
  bytes.as<cupti::Kind>() = kForeignKind;
  return bytes;
}

size_t size_of(cupti::Kind kind) {
  constexpr size_t foreign_bytes = 40;
  return kind == kForeignKind ? foreign_bytes : cupti::record_size(kind, emulated_release().api_version);
}

void forget_ends_after(uint64_t now_ns, uint8_t* buffer, size_t valid_bytes) {
  const auto forget = [&](uint64_t& end_ns) { end_ns = end_ns > now_ns ? cupti::kTimestampUnknown : end_ns; };
  for (size_t offset = 0; offset < valid_bytes;) {
    uint8_t* at = buffer + offset;
    const auto kind = *reinterpret_cast<const cupti::Kind*>(at);
    if (kind == cupti::Kind::Memcpy || kind == cupti::Kind::Memset)
      forget(reinterpret_cast<cupti::MemcpyRecord*>(at)->end_ns);  // both have it at the same place
    else if (kind == cupti::Kind::Kernel || kind == cupti::Kind::ConcurrentKernel)
      forget(reinterpret_cast<cupti::KernelRecord*>(at)->end_ns);
    else if (kind == cupti::Kind::GraphTrace)
      forget(reinterpret_cast<cupti::GraphTraceRecord*>(at)->end_ns);
    offset += size_of(kind);
  }
}

}  // namespace bragg::fake
