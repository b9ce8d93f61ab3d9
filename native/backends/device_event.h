// What one record of a device says, free of its vendor's layouts.
#pragma once

#include <cstdint>

#include "context/ids.h"

namespace bragg {

enum class DeviceEventKind : uint8_t { Kernel, Copy, Set, Graph };

// Host, Device, Array of a device, Peer: another device.
enum class CopyKind : uint8_t { Unknown, HtoD, DtoH, HtoA, AtoH, AtoA, AtoD, DtoA, DtoD, HtoH, PtoP };

struct DeviceEvent {
  DeviceEventKind kind = DeviceEventKind::Kernel;
  bool is_own = false;      // a kernel of ours, also as a node of a graph: no work of the program
  bool holds_host = false;  // a copy whose call returns when it is done, also an asynchronous one
  CopyKind copy_kind = CopyKind::Unknown;
  CorrelationId correlation = CorrelationId::None;
  uint32_t device = 0;
  uint32_t context = 0;
  uint32_t stream = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint64_t bytes = 0;
  GraphNodeId graph_node = GraphNodeId::None;  // of the executable graph that it ran for; None: none, or a whole graph
  GraphId graph = GraphId::None;               // that graph
  const char* name = nullptr;                  // of a kernel, valid while the event is taken; of whole graphs the kind
  // Kernels: registers, static_shared, dynamic_shared, local_per_thread, grid xyz, block xyz, cluster xyz.
  uint32_t launch_config[13] = {};
};

}  // namespace bragg
