// The part of NCCL's profiler interface that is used, versions 4 to 6 (NCCL 2.27 to 2.30), declared by ourselves.
// Numbers and layouts: NVIDIA/nccl, src/include/plugin/nccl_profiler.h and profiler/profiler_v4.h to profiler_v6.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bragg::nccl {

// ncclResult_t
enum class Result : int { Success = 0 };

// Bits of the mask that a plug-in asks with, and types of events. From GroupCall on: version 5; CopiedCollective: 6.
enum class EventType : uint64_t {
  Collective = 1 << 1,
  Message = 1 << 2,
  Channel = 1 << 6,
  GroupCall = 1 << 8,
  CollectiveCall = 1 << 9,
  MessageCall = 1 << 10,
  Launch = 1 << 11,
  CopiedCollective = 1 << 12,
};

// A collective that NCCL queues, between its launch and the end of its kernel.
struct Collective {
  uint64_t sequence;  // of this function in the communicator
  const char* function;
  const void* sent;
  void* received;
  size_t count;
  int32_t root;
  const char* dtype;
  uint8_t n_channels;  // from here on not of copied collectives
  uint8_t n_warps;
  const char* algorithm;
  const char* protocol;
};

// A send or a receive.
struct Message {
  const char* function;
  void* buffer;
  const char* dtype;
  size_t count;
  int32_t peer;
  uint8_t n_channels;
};

// A channel of the kernel, which has begun.
struct Channel {
  uint8_t number;
  uint64_t begin_ns;  // the GPU's globaltimer
};

// A call of NCCL's API, before the launch.
struct CollectiveCall {
  const char* function;
  size_t count;
  const char* dtype;
  int32_t root;
  void* stream;
  bool is_captured;
};
struct MessageCall {
  const char* function;
  size_t count;
  const char* dtype;
  void* stream;
  bool is_captured;
};

// 0 type   8 handle of the parent   16 i32 rank   24 what the type says. In version 4 the type is one byte.
struct Event {
  uint64_t type;
  void* parent;
  int32_t rank;
  union {
    Collective collective;
    Message message;
    Channel channel;
    CollectiveCall collective_call;
    MessageCall message_call;
  };
};
static_assert(offsetof(Event, parent) == 8 && offsetof(Event, rank) == 16 && offsetof(Event, collective) == 24);
static_assert(offsetof(Collective, count) == 32 && offsetof(Collective, dtype) == 48);
static_assert(offsetof(Collective, n_channels) == 56 && offsetof(Collective, algorithm) == 64);
static_assert(offsetof(Message, count) == 24 && offsetof(Message, n_channels) == 36);
static_assert(offsetof(Channel, begin_ns) == 8);
static_assert(offsetof(CollectiveCall, stream) == 32 && offsetof(MessageCall, stream) == 24);

enum class State : int { ChannelEnds = 22 };

// Of ChannelEnds.
struct StateValue {
  uint64_t end_ns;  // the GPU's globaltimer
};

// ncclDebugLogger_t, which is not called.
using Logger = void (*)();

using InitV4 = Result(void** context, int* mask, const char* name, uint64_t id, int n_nodes, int n_ranks, int rank,
                      Logger);
using Init = Result(void** context, uint64_t id, int* mask, const char* name, int n_nodes, int n_ranks, int rank,
                    Logger);

// What NCCL looks for, under the name `ncclProfiler_v<version>`.
template <class InitOfVersion>
struct Profiler {
  const char* name;
  InitOfVersion* init;
  Result (*start_event)(void* context, void** handle, const Event* event);
  Result (*stop_event)(void* handle);
  Result (*record_state)(void* handle, State state, const StateValue* value);
  Result (*finalize)(void* context);
};

}  // namespace bragg::nccl
