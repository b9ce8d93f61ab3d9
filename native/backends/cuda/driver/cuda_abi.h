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
  StreamCaptureImplicit = 906,
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

enum class PointerAttribute : uint32_t {
  DeviceOrdinal = 9,  // int32_t
};

enum class CaptureStatus : uint32_t {
  None = 0,
  Active = 1,
  Invalidated = 2,
};

// Whether calls that would wait for the device fail while a stream is being captured.
enum class CaptureMode : uint32_t {
  Global = 0,
  ThreadLocal = 1,
  Relaxed = 2,
};

// A stream that is not a handle: what it means depends on the current context.
inline constexpr uintptr_t kPerThreadDefaultStream = 2;

inline constexpr uint32_t kRegisterPortable = 1;  // pinned for all contexts
inline constexpr uint32_t kRegisterMapped = 2;    // has an address on the device

// Function types: dlsym gives `CuInit*`. Each is named after its symbol; a suffix (_v2) stays in the symbol only.
using CuInit = Result(uint32_t flags);
using CuDriverGetVersion = Result(int32_t* version);  // 1000 * major + 10 * minor
using CuGetErrorName = Result(Result error, const char** name);
using CuDeviceGetCount = Result(int32_t* count);
using CuDeviceGet = Result(Device* device, int32_t ordinal);
using CuDeviceGetName = Result(char* name, int32_t name_size_bytes, Device device);
struct Uuid {
  uint8_t bytes[16];
};
using CuDeviceGetUuid = Result(Uuid* uuid, Device device);  // cuDeviceGetUuid_v2: of a MIG instance its own
using CuDeviceGetAttribute = Result(int32_t* value, DeviceAttribute attribute, Device device);
using CuDeviceTotalMem = Result(size_t* size_bytes, Device device);  // cuDeviceTotalMem_v2
using CuCtxGetCurrent = Result(Context* context);
using CuCtxGetDevice = Result(Device* device);
using CuCtxPushCurrent = Result(Context context);  // cuCtxPushCurrent_v2
using CuCtxPopCurrent = Result(Context* context);  // cuCtxPopCurrent_v2
using CuCtxSynchronize = Result();
using CuCtxGetId = Result(Context context, uint64_t* id);  // from 12.0; never given twice
using CuDevicePrimaryCtxGetState = Result(Device device, uint32_t* flags, int32_t* active);
using CuDevicePrimaryCtxRetain = Result(Context* context, Device device);
using CuDevicePrimaryCtxRelease = Result(Device device);  // cuDevicePrimaryCtxRelease_v2
using CuModuleLoadData = Result(Module* module, const void* image);
using CuModuleGetFunction = Result(Function* function, Module module, const char* name);
using CuLaunchKernel = Result(Function function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                              uint32_t block_y, uint32_t block_z, uint32_t dynamic_shared_bytes, Stream stream,
                              void** arguments, void** extra);
using CuMemHostRegister = Result(void* memory, size_t size_bytes, uint32_t flags);              // cuMemHostRegister_v2
using CuMemHostGetDevicePointer = Result(DevicePointer* device, void* memory, uint32_t flags);  // ..._v2
using CuPointerGetAttribute = Result(void* value, PointerAttribute attribute, DevicePointer pointer);
using CuStreamGetCtx = Result(Stream stream, Context* context);
using CuStreamIsCapturing = Result(Stream stream, CaptureStatus* status);
using CuThreadExchangeStreamCaptureMode = Result(CaptureMode* mode);

}  // namespace bragg::cuda
