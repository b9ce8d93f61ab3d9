// Own declarations of the part of the CUPTI ABI (libcupti.so.12, libcupti.so.13) that is used: no vendor header is
// needed to build. tests/integration/test_cupti_abi.py compares every number, offset and signature with the vendor's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/driver/cuda_abi.h"
#include "backends/cuda/driver/cupti_cbids.h"
#include "backends/cuda/driver/cupti_records.h"

namespace bragg::cupti {

// Values that are not listed occur too; cuptiGetResultString names them.
enum class Result : uint32_t {
  Success = 0,
  InvalidParameter = 1,
  InvalidDevice = 2,
  InvalidContext = 3,
  InvalidOperation = 7,
  OutOfMemory = 8,
  ParameterSizeNotSufficient = 10,
  MaxLimitReached = 12,  // of cuptiActivityGetNextRecord: the buffer has no further record
  NotReady = 13,
  NotCompatible = 14,
  NotInitialized = 15,
  InvalidMetricName = 17,
  InvalidKind = 21,
  HardwareBusy = 26,
  NotSupported = 27,
  VirtualizedDeviceNotSupported = 33,
  InsufficientPrivileges = 35,
  MultipleSubscribersNotSupported = 39,
  VirtualizedDeviceInsufficientPrivileges = 40,
  ConfidentialComputingNotSupported = 41,
  CmpDeviceNotSupported = 42,
  MigDeviceNotSupported = 43,
  SliDeviceNotSupported = 44,
  WslDeviceNotSupported = 45,
  Unknown = 999,
};

enum class Domain : uint32_t {
  DriverApi = 1,
  RuntimeApi = 2,
  Resource = 3,
  Synchronize = 4,
  Nvtx = 5,
  State = 6,
};

// Callback ids of Domain::Resource; numbers, since one parameter carries the ids of every domain.
namespace resource {
inline constexpr uint32_t kContextCreated = 1;
inline constexpr uint32_t kContextDestroyStarting = 2;
inline constexpr uint32_t kStreamCreated = 3;
inline constexpr uint32_t kStreamDestroyStarting = 4;
inline constexpr uint32_t kCuInitFinished = 5;
inline constexpr uint32_t kModuleLoaded = 6;
inline constexpr uint32_t kModuleUnloadStarting = 7;
inline constexpr uint32_t kGraphCreated = 9;
inline constexpr uint32_t kGraphDestroyStarting = 10;
inline constexpr uint32_t kGraphCloned = 11;
inline constexpr uint32_t kGraphNodeCreateStarting = 12;
inline constexpr uint32_t kGraphNodeCreated = 13;
inline constexpr uint32_t kGraphNodeDestroyStarting = 14;
inline constexpr uint32_t kGraphExecCreateStarting = 17;
inline constexpr uint32_t kGraphExecCreated = 18;
inline constexpr uint32_t kGraphExecDestroyStarting = 19;
inline constexpr uint32_t kGraphNodeCloned = 20;
inline constexpr uint32_t kGraphNodeUpdated = 22;
inline constexpr uint32_t kGraphNodeSetParams = 23;
}  // namespace resource

enum class CallbackSite : uint32_t { Enter = 0, Exit = 1 };

enum class ThreadIdType : uint32_t {
  Default = 0,  // pthread_self(), cut to 32 bits
  System = 1,   // gettid()
};

// Flag of cuptiActivityFlushAll: also records of unfinished work, with end 0, which are then not delivered again.
inline constexpr uint32_t kFlushForced = 1;

enum class Attribute : uint32_t {
  DeviceBufferBytes = 0,
  DeviceBufferPoolLimit = 2,
  ZeroedOutBuffer = 5,           // uint8_t: request callbacks return zeroed buffers, so CUPTI need not clear them
  PerThreadBuffers = 9,          // uint8_t; exists from 12.3, default 1 from 13.0
  MultipleSubscriberState = 12,  // uint8_t: 0 or 1, as the first subscriber decided; 2: none has
  HardwareTrace = 13,            // uint8_t: the hardware event system writes the records
  GraphTraceForAll = 20,         // uint8_t, of all subscribers: whole graphs, and none of their nodes
};

// Argument of callbacks of Domain::DriverApi and Domain::RuntimeApi.
struct CallbackData {
  CallbackSite site;
  const char* function_name;
  const void* function_params;
  void* function_return_value;  // at Exit: points to a cuda::Result
  const char* symbol_name;      // kernel launches only; null for a graph
  cuda::Context context;
  uint32_t context_uid;
  uint64_t* correlation_data;  // one word, kept from Enter to Exit of a call
  uint32_t correlation;
};
static_assert(offsetof(CallbackData, function_name) == 8 && offsetof(CallbackData, function_return_value) == 24);
static_assert(offsetof(CallbackData, symbol_name) == 32 && offsetof(CallbackData, context) == 40);
static_assert(offsetof(CallbackData, context_uid) == 48 && offsetof(CallbackData, correlation_data) == 56);
static_assert(offsetof(CallbackData, correlation) == 64 && sizeof(CallbackData) == 72);

// What `function_params` points to; the first parameters of the calls that are looked into.
struct CaptureParams {
  cuda::Stream stream;
  cuda::Graph* graph;  // cuStreamEndCapture only
};
struct GraphUpdateParams {
  cuda::GraphExec exec;
  cuda::Graph graph;
};
struct GraphLaunchParams {
  cuda::GraphExec exec;
  cuda::Stream stream;
};

// Argument of callbacks of Domain::Resource.
struct ResourceData {
  cuda::Context context;
  cuda::Stream stream;
  void* descriptor;  // GraphData* for graph ids
};
static_assert(offsetof(ResourceData, descriptor) == 16 && sizeof(ResourceData) == 24);

struct GraphData {
  cuda::Graph graph = nullptr;
  cuda::Graph original_graph = nullptr;
  cuda::GraphNode node = nullptr;
  cuda::GraphNode original_node = nullptr;
  cuda::GraphNodeType node_type{};
  cuda::GraphNode dependency = nullptr;
  cuda::GraphExec graph_exec = nullptr;
};
static_assert(offsetof(GraphData, node) == 16 && offsetof(GraphData, node_type) == 32);
static_assert(offsetof(GraphData, graph_exec) == 48 && sizeof(GraphData) == 56);

// Optional parameters of cuptiSubscribe_v2. `struct_size_bytes` tells CUPTI how much is there: 32 for 13.0 and 13.1.
struct SubscriberParams {
  size_t struct_size_bytes;
  const char* name;
  char* old_name;  // filled on MultipleSubscribersNotSupported; kOldSubscriberNameBytes avoids truncation
  size_t old_name_size_bytes;
  uint8_t allow_multiple;  // from 13.2
  uint8_t padding[7];
};
static_assert(offsetof(SubscriberParams, allow_multiple) == 32 && sizeof(SubscriberParams) == 40);
inline constexpr size_t kSubscriberParamsBytes13_0 = offsetof(SubscriberParams, allow_multiple);
inline constexpr size_t kOldSubscriberNameBytes = 64;

using Subscriber = struct SubscriberHandle*;
using Callback = void(void* user_data, Domain domain, uint32_t cbid, const void* data);
using BufferRequested = void(uint8_t** buffer, size_t* size_bytes, size_t* max_records);
using BufferCompleted = void(cuda::Context context, uint32_t stream, uint8_t* buffer, size_t size_bytes,
                             size_t valid_bytes);

// Version 2, from 13.2, in full from 13.3: records, buffers and attributes belong to a subscriber, of whom there may be
// several. A process has subscribers of one version only.
struct BufferRequestInfo {
  size_t struct_size_bytes;
};
struct BufferCompleteInfo {
  size_t struct_size_bytes;
  uint64_t thread;  // whose buffer it is
  void** layouts;   // of records whose fields the subscriber chose
  size_t layout_count;
};
static_assert(offsetof(BufferCompleteInfo, layouts) == 16 && sizeof(BufferCompleteInfo) == 32);
using BufferRequested_v2 = void(uint8_t** buffer, size_t* size_bytes, size_t* max_records, BufferRequestInfo* info);
using BufferCompleted_v2 = void(uint8_t* buffer, size_t size_bytes, size_t valid_bytes, BufferCompleteInfo* info);
inline constexpr uint32_t kSharedFrom = 130300;

// Function types, each named after its symbol: dlsym gives `CuptiSubscribe*`.
using CuptiGetVersion = Result(uint32_t* version);
using CuptiGetResultString = Result(Result result, const char** text);
using CuptiGetCallbackName = Result(Domain domain, uint32_t cbid, const char** name);
using CuptiSubscribe = Result(Subscriber* subscriber, Callback* callback, void* user_data);
using CuptiSubscribe_v2 = Result(Subscriber* subscriber, Callback* callback, void* user_data, SubscriberParams* params);
using CuptiUnsubscribe = Result(Subscriber subscriber);
using CuptiEnableCallback = Result(uint32_t enable, Subscriber subscriber, Domain domain, uint32_t cbid);
using CuptiEnableDomain = Result(uint32_t enable, Subscriber subscriber, Domain domain);
using CuptiActivityRegisterCallbacks = Result(BufferRequested* requested, BufferCompleted* completed);
using CuptiActivityEnable = Result(Kind kind);
using CuptiActivityDisable = Result(Kind kind);
using CuptiActivityFlushAll = Result(uint32_t flags);
using CuptiActivityFlushPeriod = Result(uint32_t period_ms);
using CuptiActivityGetNumDroppedRecords = Result(cuda::Context context, uint32_t stream, size_t* dropped);
using CuptiActivitySetAttribute = Result(Attribute attribute, size_t* value_size_bytes, void* value);
using CuptiActivityGetAttribute = Result(Attribute attribute, size_t* value_size_bytes, void* value);
using CuptiActivityGetNextRecord = Result(uint8_t* buffer, size_t valid_bytes, void** record);
using CuptiActivityRegisterCallbacks_v2 = Result(Subscriber subscriber, BufferRequested_v2* requested,
                                                 BufferCompleted_v2* completed);
using CuptiActivityEnable_v2 = Result(Subscriber subscriber, Kind kind, void* config);  // null: all fields
using CuptiActivityDisable_v2 = Result(Subscriber subscriber, Kind kind, void* config);
using CuptiActivityGetNumDroppedRecords_v2 = Result(Subscriber subscriber, cuda::Context context, uint32_t stream,
                                                    size_t* dropped);
using CuptiActivitySetAttribute_v2 = Result(Subscriber subscriber, Attribute attribute, size_t* value_size_bytes,
                                            void* value);
using CuptiActivityGetAttribute_v2 = Result(Subscriber subscriber, Attribute attribute, size_t* value_size_bytes,
                                            void* value);
using CuptiActivityGetNextRecord_v2 = Result(Subscriber subscriber, uint8_t* buffer, size_t valid_bytes, void** record);
using CuptiActivityGetStructSize = Result(Kind kind, uint32_t version, size_t* size_bytes);  // from 13.2; 0: its own
using CuptiActivityEnableLatencyTimestamps = Result(uint8_t enable);
using CuptiActivityEnableDriverApi = Result(uint32_t cbid, uint8_t enable);  // from 12.5
using CuptiGetTimestamp = Result(uint64_t* timestamp_ns);
using CuptiGetDeviceId = Result(cuda::Context context, uint32_t* device);
using CuptiGetContextId = Result(cuda::Context context, uint32_t* id);
using CuptiGetStreamIdEx = Result(cuda::Context context, cuda::Stream stream, uint8_t per_thread, uint32_t* id);
using CuptiGetGraphId = Result(cuda::Graph graph, uint32_t* id);
using CuptiGetGraphExecId = Result(cuda::GraphExec graph_exec, uint32_t* id);  // from 12.3
using CuptiGetGraphNodeId = Result(cuda::GraphNode node, uint64_t* id);
using CuptiSetThreadIdType = Result(ThreadIdType type);

}  // namespace bragg::cupti
