// Own declarations of the part of the CUDA driver ABI (libcuda.so.1) that is used. tests/integration/test_cupti_abi.py
// compares every number and signature with the vendor's headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bragg::cuda {

using Device = int32_t;
using DevicePointer = uint64_t;
using Context = struct ContextHandle*;
using Module = struct ModuleHandle*;
using Function = struct FunctionHandle*;
using Stream = struct StreamHandle*;
using Event = struct EventHandle*;
using Graph = struct GraphHandle*;
using GraphNode = struct GraphNodeHandle*;
using GraphExec = struct GraphExecHandle*;

// Values that are not listed occur too.
enum class Result : uint32_t {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  Deinitialized = 4,
  NoDevice = 100,
  InvalidDevice = 101,
  InvalidContext = 201,
  OperatingSystem = 304,
  InvalidHandle = 400,
  NotFound = 500,
  NotReady = 600,
  LaunchFailed = 719,
  NotPermitted = 800,
  NotSupported = 801,
  SystemDriverMismatch = 803,
  CompatNotSupportedOnDevice = 804,
  StreamCaptureUnsupported = 900,
  StreamCaptureInvalidated = 901,
  StreamCaptureWrongThread = 908,
  GraphExecUpdateFailure = 910,
  Unknown = 999,
};

enum class DeviceAttribute : uint32_t {
  ClockKhz = 13,
  MultiprocessorCount = 16,
  MemoryClockKhz = 36,
  MemoryBusWidthBits = 37,
  L2CacheBytes = 38,
  MaxThreadsPerMultiprocessor = 39,
  ComputeCapabilityMajor = 75,
  ComputeCapabilityMinor = 76,
  MaxSharedBytesPerMultiprocessor = 81,
};

enum class GraphNodeType : uint32_t {
  Kernel = 0,
  Memcpy = 1,
  Memset = 2,
  Host = 3,
  Graph = 4,
  Empty = 5,
  Conditional = 13,
};

// Function types: dlsym gives `CuInit*`. Each is named after its symbol; a suffix (_v2) stays in the symbol only.
using CuInit = Result(uint32_t flags);
using CuDriverGetVersion = Result(int32_t* version);  // 1000 * major + 10 * minor
using CuGetErrorName = Result(Result error, const char** name);
using CuDeviceGetCount = Result(int32_t* count);
using CuDeviceGet = Result(Device* device, int32_t ordinal);
using CuDeviceGetName = Result(char* name, int32_t name_size_bytes, Device device);
using CuDeviceGetAttribute = Result(int32_t* value, DeviceAttribute attribute, Device device);
using CuDeviceTotalMem = Result(size_t* size_bytes, Device device);  // cuDeviceTotalMem_v2
using CuCtxGetCurrent = Result(Context* context);
using CuCtxGetDevice = Result(Device* device);
using CuCtxPushCurrent = Result(Context context);  // cuCtxPushCurrent_v2
using CuCtxPopCurrent = Result(Context* context);  // cuCtxPopCurrent_v2
using CuCtxSynchronize = Result();

}  // namespace bragg::cuda
