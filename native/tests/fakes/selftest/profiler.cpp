#include "selftest/profiler.h"

#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "selftest/program.h"

namespace bragg::fake::selftest {
namespace {

struct Seen {
  std::mutex mutex;
  uint32_t version = 0;
  BufferPolicy policy;
  std::vector<SeenRecord> records;
  std::vector<SeenCallback> callbacks;
  std::vector<pid_t> delivering_threads;
  std::vector<pid_t> requesting_threads;
  size_t buffers = 0;
  void (*on_resource)(uint32_t cbid, const cupti::GraphData& data) = nullptr;
};

Seen& seen() {
  static Seen& self = *new Seen;
  return self;
}

template <class Record>
SeenRecord with_place(const Record& record) {
  SeenRecord result{.kind = record.kind, .start_ns = record.start_ns, .end_ns = record.end_ns};
  result.device = record.device;
  result.context = record.context;
  result.stream = record.stream;
  result.correlation = record.correlation;
  result.graph = record.graph;
  return result;
}

template <class Record>
SeenRecord from_memory(const uint8_t* at) {
  const auto& record = *reinterpret_cast<const Record*>(at);
  SeenRecord result = with_place(record);
  result.size_bytes = record.size_bytes;
  result.graph_node = record.graph_node;
  return result;
}

SeenRecord from_kernel(const uint8_t* at) {
  const auto& record = *reinterpret_cast<const cupti::KernelRecord*>(at);
  SeenRecord result = with_place(record);
  result.name = record.name;
  result.graph_node = record.graph_node;
  result.grid_x = static_cast<uint32_t>(record.grid[0]);
  return result;
}

SeenRecord from_api(const uint8_t* at) {
  const auto& record = *reinterpret_cast<const cupti::ApiRecord*>(at);
  SeenRecord result{.kind = record.kind, .start_ns = record.start_ns, .end_ns = record.end_ns};
  result.correlation = record.correlation;
  result.cbid = record.cbid;
  return result;
}

SeenRecord read(const uint8_t* at) {
  switch (*reinterpret_cast<const cupti::Kind*>(at)) {
    case cupti::Kind::Kernel:
    case cupti::Kind::ConcurrentKernel:
      return from_kernel(at);
    case cupti::Kind::Memcpy:
      return from_memory<cupti::MemcpyRecord>(at);
    case cupti::Kind::Memset:
      return from_memory<cupti::MemsetRecord>(at);
    case cupti::Kind::GraphTrace:
      return with_place(*reinterpret_cast<const cupti::GraphTraceRecord*>(at));
    default:
      return from_api(at);
  }
}

void on_buffer_requested(uint8_t** buffer, size_t* size_bytes, size_t* max_records) {
  const std::lock_guard lock(seen().mutex);
  const BufferPolicy& policy = seen().policy;
  seen().requesting_threads.push_back(gettid());
  *buffer = policy.refuse ? nullptr : static_cast<uint8_t*>(std::aligned_alloc(8, policy.size_bytes));
  *size_bytes = policy.size_bytes;
  *max_records = policy.max_records;
}

void on_buffer_completed(cuda::Context, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  const std::lock_guard lock(seen().mutex);
  seen().delivering_threads.push_back(gettid());
  for (size_t offset = 0; offset < valid_bytes;) {
    const size_t size_bytes = cupti::record_size(*reinterpret_cast<cupti::Kind*>(buffer + offset), seen().version);
    if (!CHECK(size_bytes != 0 && offset + size_bytes <= valid_bytes)) break;
    SeenRecord record = read(buffer + offset);
    record.buffer = seen().buffers;
    seen().records.push_back(record);
    offset += size_bytes;
  }
  ++seen().buffers;
  std::free(buffer);
}

void on_api(SeenCallback callback, const cupti::CallbackData& data) {
  callback.site = data.site;
  callback.correlation = data.correlation;
  callback.symbol = data.symbol_name != nullptr ? data.symbol_name : "";
  if (data.site == cupti::CallbackSite::Enter) *data.correlation_data = data.correlation + 1000u;
  callback.data_kept = *data.correlation_data == data.correlation + 1000u;
  const std::lock_guard lock(seen().mutex);
  seen().callbacks.push_back(callback);
}

void on_resource_callback(const SeenCallback& callback, const cupti::ResourceData& data) {
  if (seen().on_resource != nullptr && data.descriptor != nullptr)
    seen().on_resource(callback.cbid, *static_cast<const cupti::GraphData*>(data.descriptor));
  const std::lock_guard lock(seen().mutex);
  seen().callbacks.push_back(callback);
}

}  // namespace

void on_callback(void*, cupti::Domain domain, uint32_t cbid, const void* data) {
  const SeenCallback callback{.domain = domain, .cbid = cbid};
  if (domain == cupti::Domain::DriverApi || domain == cupti::Domain::RuntimeApi)
    return on_api(callback, *static_cast<const cupti::CallbackData*>(data));
  on_resource_callback(callback, *static_cast<const cupti::ResourceData*>(data));
}

Profiler::Profiler(const char* library) : library_(load(library)) {}

void Profiler::start(std::initializer_list<cupti::Kind> kinds) {
  const std::lock_guard lock(seen().mutex);
  seen().version = version();
  CHECK_EQ(call<cupti::CuptiSubscribe>("cuptiSubscribe", &subscriber, on_callback, nullptr), kOk);
  for (const auto domain : {cupti::Domain::DriverApi, cupti::Domain::Resource})
    CHECK_EQ(call<cupti::CuptiEnableDomain>("cuptiEnableDomain", 1u, subscriber, domain), kOk);
  CHECK_EQ(call<cupti::CuptiActivityRegisterCallbacks>("cuptiActivityRegisterCallbacks", on_buffer_requested,
                                                       on_buffer_completed),
           kOk);
  for (const cupti::Kind kind : kinds) CHECK_EQ(call<cupti::CuptiActivityEnable>("cuptiActivityEnable", kind), kOk);
}

size_t Profiler::dropped() const {
  size_t dropped = 0;
  CHECK_EQ(call<cupti::CuptiActivityGetNumDroppedRecords>("cuptiActivityGetNumDroppedRecords", nullptr, 0u, &dropped),
           kOk);
  return dropped;
}

uint32_t Profiler::version() const {
  uint32_t version = 0;
  CHECK_EQ(call<cupti::CuptiGetVersion>("cuptiGetVersion", &version), kOk);
  return version;
}

std::vector<SeenRecord> Profiler::records() {
  const std::lock_guard lock(seen().mutex);
  return seen().records;
}

std::vector<SeenRecord> Profiler::records(cupti::Kind kind) {
  std::vector<SeenRecord> all = records();
  std::erase_if(all, [&](const SeenRecord& record) { return record.kind != kind; });
  return all;
}

std::vector<SeenCallback> Profiler::callbacks() {
  const std::lock_guard lock(seen().mutex);
  return seen().callbacks;
}

std::vector<pid_t> Profiler::delivering_threads() {
  const std::lock_guard lock(seen().mutex);
  return seen().delivering_threads;
}

std::vector<pid_t> Profiler::requesting_threads() {
  const std::lock_guard lock(seen().mutex);
  return seen().requesting_threads;
}

void Profiler::set_policy(const BufferPolicy& policy) {
  const std::lock_guard lock(seen().mutex);
  seen().policy = policy;
}

void Profiler::on_resource(void (*function)(uint32_t cbid, const cupti::GraphData& data)) {
  seen().on_resource = function;
}

}  // namespace bragg::fake::selftest
