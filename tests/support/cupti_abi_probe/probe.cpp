// Every number, offset, size and signature of native/backends/cuda/driver/*_abi.h beside the one of the CUPTI headers
// on the include path. The test that compiles this writes vendor_names.h: the newest struct of each record kind as
// VENDOR_KERNEL, VENDOR_MEMCPY, VENDOR_MEMSET, VENDOR_GRAPH_TRACE, VENDOR_PEER_MEMCPY, and FOR_EACH_CBID(macro) over
// driver calls.
#include "probe.h"

#include <string>

#include "driver/driver_cbids.h"
#include "vendor_names.h"

namespace {

void print_cuda() {
  CUDA_VALUE(Result, Success, CUDA_SUCCESS);
  CUDA_VALUE(Result, InvalidValue, CUDA_ERROR_INVALID_VALUE);
  CUDA_VALUE(Result, OutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  CUDA_VALUE(Result, NotInitialized, CUDA_ERROR_NOT_INITIALIZED);
  CUDA_VALUE(Result, Deinitialized, CUDA_ERROR_DEINITIALIZED);
  CUDA_VALUE(Result, NoDevice, CUDA_ERROR_NO_DEVICE);
  CUDA_VALUE(Result, InvalidDevice, CUDA_ERROR_INVALID_DEVICE);
  CUDA_VALUE(Result, InvalidContext, CUDA_ERROR_INVALID_CONTEXT);
  CUDA_VALUE(Result, OperatingSystem, CUDA_ERROR_OPERATING_SYSTEM);
  CUDA_VALUE(Result, InvalidHandle, CUDA_ERROR_INVALID_HANDLE);
  CUDA_VALUE(Result, NotFound, CUDA_ERROR_NOT_FOUND);
  CUDA_VALUE(Result, NotReady, CUDA_ERROR_NOT_READY);
  CUDA_VALUE(Result, LaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
  CUDA_VALUE(Result, NotPermitted, CUDA_ERROR_NOT_PERMITTED);
  CUDA_VALUE(Result, NotSupported, CUDA_ERROR_NOT_SUPPORTED);
  CUDA_VALUE(Result, SystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
  CUDA_VALUE(Result, CompatNotSupportedOnDevice, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
  CUDA_VALUE(Result, StreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUDA_VALUE(Result, StreamCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CUDA_VALUE(Result, StreamCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CUDA_VALUE(Result, StreamCaptureWrongThread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  CUDA_VALUE(Result, GraphExecUpdateFailure, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CUDA_VALUE(Result, Unknown, CUDA_ERROR_UNKNOWN);
  CUDA_VALUE(DeviceAttribute, ClockKhz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  CUDA_VALUE(DeviceAttribute, MultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  CUDA_VALUE(DeviceAttribute, MemoryClockKhz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  CUDA_VALUE(DeviceAttribute, MemoryBusWidthBits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  CUDA_VALUE(DeviceAttribute, L2CacheBytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  CUDA_VALUE(DeviceAttribute, MaxThreadsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  CUDA_VALUE(DeviceAttribute, ComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  CUDA_VALUE(DeviceAttribute, ComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  CUDA_VALUE(DeviceAttribute, MaxSharedBytesPerMultiprocessor,
             CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  CUDA_VALUE(GraphNodeType, Kernel, CU_GRAPH_NODE_TYPE_KERNEL);
  CUDA_VALUE(GraphNodeType, Memcpy, CU_GRAPH_NODE_TYPE_MEMCPY);
  CUDA_VALUE(GraphNodeType, Memset, CU_GRAPH_NODE_TYPE_MEMSET);
  CUDA_VALUE(GraphNodeType, Host, CU_GRAPH_NODE_TYPE_HOST);
  CUDA_VALUE(GraphNodeType, Graph, CU_GRAPH_NODE_TYPE_GRAPH);
  CUDA_VALUE(GraphNodeType, Empty, CU_GRAPH_NODE_TYPE_EMPTY);
  CUDA_VALUE(GraphNodeType, Conditional, CU_GRAPH_NODE_TYPE_CONDITIONAL);
  CUDA_VALUE(PointerAttribute, DeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
  CUDA_VALUE(CaptureStatus, None, CU_STREAM_CAPTURE_STATUS_NONE);
  CUDA_VALUE(CaptureStatus, Active, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CUDA_VALUE(CaptureStatus, Invalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CUDA_VALUE(CaptureMode, Global, CU_STREAM_CAPTURE_MODE_GLOBAL);
  CUDA_VALUE(CaptureMode, ThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CUDA_VALUE(CaptureMode, Relaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
  CUDA_CONSTANT(kPerThreadDefaultStream, reinterpret_cast<uintptr_t>(CU_STREAM_PER_THREAD));
  CUDA_CONSTANT(kRegisterPortable, CU_MEMHOSTREGISTER_PORTABLE);
  CUDA_CONSTANT(kRegisterMapped, CU_MEMHOSTREGISTER_DEVICEMAP);
  CUDA_SIGNATURE(CuInit, cuInit);
  CUDA_SIGNATURE(CuDriverGetVersion, cuDriverGetVersion);
  CUDA_SIGNATURE(CuGetErrorName, cuGetErrorName);
  CUDA_SIGNATURE(CuDeviceGetCount, cuDeviceGetCount);
  CUDA_SIGNATURE(CuDeviceGet, cuDeviceGet);
  CUDA_SIGNATURE(CuDeviceGetName, cuDeviceGetName);
  CUDA_SIGNATURE(CuDeviceGetUuid, cuDeviceGetUuid_v2);
  CUDA_SIGNATURE(CuDeviceGetAttribute, cuDeviceGetAttribute);
  CUDA_SIGNATURE(CuDeviceTotalMem, cuDeviceTotalMem);
  CUDA_SIGNATURE(CuCtxGetCurrent, cuCtxGetCurrent);
  CUDA_SIGNATURE(CuCtxGetDevice, cuCtxGetDevice);
  CUDA_SIGNATURE(CuCtxPushCurrent, cuCtxPushCurrent);
  CUDA_SIGNATURE(CuCtxPopCurrent, cuCtxPopCurrent);
  CUDA_SIGNATURE(CuCtxSynchronize, cuCtxSynchronize);
  CUDA_SIGNATURE(CuCtxGetId, cuCtxGetId);
  CUDA_SIGNATURE(CuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState);
  CUDA_SIGNATURE(CuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain);
  CUDA_SIGNATURE(CuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease);
  CUDA_SIGNATURE(CuModuleLoadData, cuModuleLoadData);
  CUDA_SIGNATURE(CuModuleGetFunction, cuModuleGetFunction);
  CUDA_SIGNATURE(CuLaunchKernel, cuLaunchKernel);
  CUDA_SIGNATURE(CuMemHostRegister, cuMemHostRegister);
  CUDA_SIGNATURE(CuMemHostGetDevicePointer, cuMemHostGetDevicePointer);
  CUDA_SIGNATURE(CuPointerGetAttribute, cuPointerGetAttribute);
  CUDA_SIGNATURE(CuStreamGetCtx, cuStreamGetCtx);
  CUDA_SIGNATURE(CuStreamIsCapturing, cuStreamIsCapturing);
  CUDA_SIGNATURE(CuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode);
}

void print_enums() {
  VALUE(Result, Success, CUPTI_SUCCESS);
  VALUE(Result, InvalidParameter, CUPTI_ERROR_INVALID_PARAMETER);
  VALUE(Result, InvalidDevice, CUPTI_ERROR_INVALID_DEVICE);
  VALUE(Result, InvalidContext, CUPTI_ERROR_INVALID_CONTEXT);
  VALUE(Result, InvalidOperation, CUPTI_ERROR_INVALID_OPERATION);
  VALUE(Result, OutOfMemory, CUPTI_ERROR_OUT_OF_MEMORY);
  VALUE(Result, ParameterSizeNotSufficient, CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
  VALUE(Result, MaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
  VALUE(Result, NotReady, CUPTI_ERROR_NOT_READY);
  VALUE(Result, NotCompatible, CUPTI_ERROR_NOT_COMPATIBLE);
  VALUE(Result, NotInitialized, CUPTI_ERROR_NOT_INITIALIZED);
  VALUE(Result, InvalidMetricName, CUPTI_ERROR_INVALID_METRIC_NAME);
  VALUE(Result, InvalidKind, CUPTI_ERROR_INVALID_KIND);
  VALUE(Result, HardwareBusy, CUPTI_ERROR_HARDWARE_BUSY);
  VALUE(Result, NotSupported, CUPTI_ERROR_NOT_SUPPORTED);
  VALUE(Result, VirtualizedDeviceNotSupported, CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED);
  VALUE(Result, InsufficientPrivileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
  VALUE(Result, MultipleSubscribersNotSupported, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  VALUE(Result, VirtualizedDeviceInsufficientPrivileges, CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
  VALUE(Result, ConfidentialComputingNotSupported, CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED);
  VALUE(Result, CmpDeviceNotSupported, CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED);
#if CUPTI_API_VERSION >= 26
  VALUE(Result, MigDeviceNotSupported, CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED);
  VALUE(Result, SliDeviceNotSupported, CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED);
  VALUE(Result, WslDeviceNotSupported, CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED);
#endif
  VALUE(Result, Unknown, CUPTI_ERROR_UNKNOWN);
  VALUE(Domain, DriverApi, CUPTI_CB_DOMAIN_DRIVER_API);
  VALUE(Domain, RuntimeApi, CUPTI_CB_DOMAIN_RUNTIME_API);
  VALUE(Domain, Resource, CUPTI_CB_DOMAIN_RESOURCE);
  VALUE(Domain, Synchronize, CUPTI_CB_DOMAIN_SYNCHRONIZE);
  VALUE(Domain, Nvtx, CUPTI_CB_DOMAIN_NVTX);
#if CUPTI_API_VERSION >= 20
  VALUE(Domain, State, CUPTI_CB_DOMAIN_STATE);
#endif
  CONSTANT(resource::kContextCreated, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
  CONSTANT(resource::kContextDestroyStarting, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
  CONSTANT(resource::kStreamCreated, CUPTI_CBID_RESOURCE_STREAM_CREATED);
  CONSTANT(resource::kStreamDestroyStarting, CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING);
  CONSTANT(resource::kCuInitFinished, CUPTI_CBID_RESOURCE_CU_INIT_FINISHED);
  CONSTANT(resource::kModuleLoaded, CUPTI_CBID_RESOURCE_MODULE_LOADED);
  CONSTANT(resource::kModuleUnloadStarting, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
  CONSTANT(resource::kGraphCreated, CUPTI_CBID_RESOURCE_GRAPH_CREATED);
  CONSTANT(resource::kGraphDestroyStarting, CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING);
  CONSTANT(resource::kGraphCloned, CUPTI_CBID_RESOURCE_GRAPH_CLONED);
  CONSTANT(resource::kGraphNodeCreateStarting, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING);
  CONSTANT(resource::kGraphNodeCreated, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
  CONSTANT(resource::kGraphNodeDestroyStarting, CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING);
  CONSTANT(resource::kGraphExecCreateStarting, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING);
  CONSTANT(resource::kGraphExecCreated, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
  CONSTANT(resource::kGraphExecDestroyStarting, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING);
  CONSTANT(resource::kGraphNodeCloned, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
#if CUPTI_API_VERSION >= 130000
  CONSTANT(resource::kGraphNodeUpdated, CUPTI_CBID_RESOURCE_GRAPH_NODE_UPDATED);
  CONSTANT(resource::kGraphNodeSetParams, CUPTI_CBID_RESOURCE_GRAPH_NODE_SET_PARAMS);
#endif
  VALUE(CallbackSite, Enter, CUPTI_API_ENTER);
  VALUE(CallbackSite, Exit, CUPTI_API_EXIT);
  VALUE(ThreadIdType, Default, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
  VALUE(ThreadIdType, System, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  VALUE(Attribute, DeviceBufferBytes, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE);
  VALUE(Attribute, DeviceBufferPoolLimit, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT);
  VALUE(Attribute, ZeroedOutBuffer, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
#if CUPTI_API_VERSION >= 21
  VALUE(Attribute, PerThreadBuffers, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);
#endif
#if CUPTI_API_VERSION >= 130200
  VALUE(Attribute, MultipleSubscriberState, CUPTI_ACTIVITY_ATTR_MULTIPLE_SUBSCRIBER_STATE);
#endif
#if CUPTI_API_VERSION >= 130300
  VALUE(Attribute, HardwareTrace, CUPTI_ACTIVITY_ATTR_ENABLE_HES);
  VALUE(Attribute, GraphTraceForAll, CUPTI_ACTIVITY_ATTR_ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE);
#endif
  CONSTANT(kFlushForced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  CONSTANT(kTimestampUnknown, CUPTI_TIMESTAMP_UNKNOWN);
  VALUE(Kind, Invalid, CUPTI_ACTIVITY_KIND_INVALID);
  VALUE(Kind, Memcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
  VALUE(Kind, Memset, CUPTI_ACTIVITY_KIND_MEMSET);
  VALUE(Kind, Kernel, CUPTI_ACTIVITY_KIND_KERNEL);
  VALUE(Kind, Driver, CUPTI_ACTIVITY_KIND_DRIVER);
  VALUE(Kind, Runtime, CUPTI_ACTIVITY_KIND_RUNTIME);
  VALUE(Kind, ConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  VALUE(Kind, Overhead, CUPTI_ACTIVITY_KIND_OVERHEAD);
  VALUE(Kind, PeerMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY2);
  VALUE(Kind, Synchronization, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  VALUE(Kind, ExternalCorrelation, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  VALUE(Kind, GraphTrace, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
#if CUPTI_API_VERSION >= 26
  VALUE(Kind, DeviceGraphTrace, CUPTI_ACTIVITY_KIND_DEVICE_GRAPH_TRACE);
#endif
  VALUE(CopyKind, Unknown, CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN);
  VALUE(CopyKind, HostToDevice, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
  VALUE(CopyKind, DeviceToHost, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
  VALUE(CopyKind, HostToArray, CUPTI_ACTIVITY_MEMCPY_KIND_HTOA);
  VALUE(CopyKind, ArrayToHost, CUPTI_ACTIVITY_MEMCPY_KIND_ATOH);
  VALUE(CopyKind, ArrayToArray, CUPTI_ACTIVITY_MEMCPY_KIND_ATOA);
  VALUE(CopyKind, ArrayToDevice, CUPTI_ACTIVITY_MEMCPY_KIND_ATOD);
  VALUE(CopyKind, DeviceToArray, CUPTI_ACTIVITY_MEMCPY_KIND_DTOA);
  VALUE(CopyKind, DeviceToDevice, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
  VALUE(CopyKind, HostToHost, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH);
  VALUE(CopyKind, PeerToPeer, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
  VALUE(MemoryKind, Unknown, CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN);
  VALUE(MemoryKind, Pageable, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
  VALUE(MemoryKind, Pinned, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
  VALUE(MemoryKind, Device, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
  VALUE(MemoryKind, Array, CUPTI_ACTIVITY_MEMORY_KIND_ARRAY);
  VALUE(MemoryKind, Managed, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);
  VALUE(MemoryKind, DeviceStatic, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC);
  VALUE(MemoryKind, ManagedStatic, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC);
}

void print_records() {
  FIELD(KernelRecord, kind, VENDOR_KERNEL, kind);
  FIELD(KernelRecord, cache_config, VENDOR_KERNEL, cacheConfig);
  FIELD(KernelRecord, shared_memory_config, VENDOR_KERNEL, sharedMemoryConfig);
  FIELD(KernelRecord, registers_per_thread, VENDOR_KERNEL, registersPerThread);
  FIELD(KernelRecord, partitioned_cache, VENDOR_KERNEL, partitionedGlobalCacheRequested);
  FIELD(KernelRecord, start_ns, VENDOR_KERNEL, start);
  FIELD(KernelRecord, end_ns, VENDOR_KERNEL, end);
  FIELD(KernelRecord, completed_ns, VENDOR_KERNEL, completed);
  FIELD(KernelRecord, device, VENDOR_KERNEL, deviceId);
  FIELD(KernelRecord, context, VENDOR_KERNEL, contextId);
  FIELD(KernelRecord, stream, VENDOR_KERNEL, streamId);
  FIELD(KernelRecord, grid, VENDOR_KERNEL, gridX);
  FIELD(KernelRecord, block, VENDOR_KERNEL, blockX);
  FIELD(KernelRecord, static_shared_bytes, VENDOR_KERNEL, staticSharedMemory);
  FIELD(KernelRecord, dynamic_shared_bytes, VENDOR_KERNEL, dynamicSharedMemory);
  FIELD(KernelRecord, local_bytes_per_thread, VENDOR_KERNEL, localMemoryPerThread);
  FIELD(KernelRecord, local_bytes_total_32, VENDOR_KERNEL, localMemoryTotal);
  FIELD(KernelRecord, correlation, VENDOR_KERNEL, correlationId);
  FIELD(KernelRecord, grid_id, VENDOR_KERNEL, gridId);
  FIELD(KernelRecord, name, VENDOR_KERNEL, name);
  FIELD(KernelRecord, queued_ns, VENDOR_KERNEL, queued);
  FIELD(KernelRecord, submitted_ns, VENDOR_KERNEL, submitted);
  FIELD(KernelRecord, launch_type, VENDOR_KERNEL, launchType);
  FIELD(KernelRecord, carveout_requested, VENDOR_KERNEL, isSharedMemoryCarveoutRequested);
  FIELD(KernelRecord, carveout_percent, VENDOR_KERNEL, sharedMemoryCarveoutRequested);
  FIELD(KernelRecord, shared_bytes_executed, VENDOR_KERNEL, sharedMemoryExecuted);
  FIELD(KernelRecord, graph_node, VENDOR_KERNEL, graphNodeId);
  FIELD(KernelRecord, shared_memory_limit_config, VENDOR_KERNEL, shmemLimitConfig);
  FIELD(KernelRecord, graph, VENDOR_KERNEL, graphId);
  FIELD(KernelRecord, access_policy_window, VENDOR_KERNEL, pAccessPolicyWindow);
  FIELD(KernelRecord, channel, VENDOR_KERNEL, channelID);
  FIELD(KernelRecord, channel_type, VENDOR_KERNEL, channelType);
  FIELD(KernelRecord, cluster, VENDOR_KERNEL, clusterX);
  FIELD(KernelRecord, cluster_scheduling_policy, VENDOR_KERNEL, clusterSchedulingPolicy);
  FIELD(KernelRecord, local_bytes_total, VENDOR_KERNEL, localMemoryTotal_v2);
  FIELD(KernelRecord, max_potential_cluster_size, VENDOR_KERNEL, maxPotentialClusterSize);
  FIELD(KernelRecord, max_active_clusters, VENDOR_KERNEL, maxActiveClusters);
  FIELD(MemcpyRecord, kind, VENDOR_MEMCPY, kind);
  FIELD(MemcpyRecord, copy_kind, VENDOR_MEMCPY, copyKind);
  FIELD(MemcpyRecord, source_kind, VENDOR_MEMCPY, srcKind);
  FIELD(MemcpyRecord, destination_kind, VENDOR_MEMCPY, dstKind);
  FIELD(MemcpyRecord, flags, VENDOR_MEMCPY, flags);
  FIELD(MemcpyRecord, size_bytes, VENDOR_MEMCPY, bytes);
  FIELD(MemcpyRecord, start_ns, VENDOR_MEMCPY, start);
  FIELD(MemcpyRecord, end_ns, VENDOR_MEMCPY, end);
  FIELD(MemcpyRecord, device, VENDOR_MEMCPY, deviceId);
  FIELD(MemcpyRecord, context, VENDOR_MEMCPY, contextId);
  FIELD(MemcpyRecord, stream, VENDOR_MEMCPY, streamId);
  FIELD(MemcpyRecord, correlation, VENDOR_MEMCPY, correlationId);
  FIELD(MemcpyRecord, runtime_correlation, VENDOR_MEMCPY, runtimeCorrelationId);
  FIELD(MemcpyRecord, graph_node, VENDOR_MEMCPY, graphNodeId);
  FIELD(MemcpyRecord, graph, VENDOR_MEMCPY, graphId);
  FIELD(MemcpyRecord, channel, VENDOR_MEMCPY, channelID);
  FIELD(MemcpyRecord, channel_type, VENDOR_MEMCPY, channelType);
#if CUPTI_API_VERSION >= 130000
  FIELD(MemcpyRecord, device_launched, VENDOR_MEMCPY, isDeviceLaunched);
#endif
  FIELD(PeerMemcpyRecord, kind, VENDOR_PEER_MEMCPY, kind);
  FIELD(PeerMemcpyRecord, copy_kind, VENDOR_PEER_MEMCPY, copyKind);
  FIELD(PeerMemcpyRecord, source_kind, VENDOR_PEER_MEMCPY, srcKind);
  FIELD(PeerMemcpyRecord, destination_kind, VENDOR_PEER_MEMCPY, dstKind);
  FIELD(PeerMemcpyRecord, flags, VENDOR_PEER_MEMCPY, flags);
  FIELD(PeerMemcpyRecord, size_bytes, VENDOR_PEER_MEMCPY, bytes);
  FIELD(PeerMemcpyRecord, start_ns, VENDOR_PEER_MEMCPY, start);
  FIELD(PeerMemcpyRecord, end_ns, VENDOR_PEER_MEMCPY, end);
  FIELD(PeerMemcpyRecord, device, VENDOR_PEER_MEMCPY, deviceId);
  FIELD(PeerMemcpyRecord, context, VENDOR_PEER_MEMCPY, contextId);
  FIELD(PeerMemcpyRecord, stream, VENDOR_PEER_MEMCPY, streamId);
  FIELD(PeerMemcpyRecord, source_device, VENDOR_PEER_MEMCPY, srcDeviceId);
  FIELD(PeerMemcpyRecord, source_context, VENDOR_PEER_MEMCPY, srcContextId);
  FIELD(PeerMemcpyRecord, destination_device, VENDOR_PEER_MEMCPY, dstDeviceId);
  FIELD(PeerMemcpyRecord, destination_context, VENDOR_PEER_MEMCPY, dstContextId);
  FIELD(PeerMemcpyRecord, correlation, VENDOR_PEER_MEMCPY, correlationId);
  FIELD(PeerMemcpyRecord, graph_node, VENDOR_PEER_MEMCPY, graphNodeId);
  FIELD(PeerMemcpyRecord, graph, VENDOR_PEER_MEMCPY, graphId);
  FIELD(PeerMemcpyRecord, channel, VENDOR_PEER_MEMCPY, channelID);
  FIELD(PeerMemcpyRecord, channel_type, VENDOR_PEER_MEMCPY, channelType);
  FIELD(MemsetRecord, kind, VENDOR_MEMSET, kind);
  FIELD(MemsetRecord, value, VENDOR_MEMSET, value);
  FIELD(MemsetRecord, size_bytes, VENDOR_MEMSET, bytes);
  FIELD(MemsetRecord, start_ns, VENDOR_MEMSET, start);
  FIELD(MemsetRecord, end_ns, VENDOR_MEMSET, end);
  FIELD(MemsetRecord, device, VENDOR_MEMSET, deviceId);
  FIELD(MemsetRecord, context, VENDOR_MEMSET, contextId);
  FIELD(MemsetRecord, stream, VENDOR_MEMSET, streamId);
  FIELD(MemsetRecord, correlation, VENDOR_MEMSET, correlationId);
  FIELD(MemsetRecord, flags, VENDOR_MEMSET, flags);
  FIELD(MemsetRecord, memory_kind, VENDOR_MEMSET, memoryKind);
  FIELD(MemsetRecord, graph_node, VENDOR_MEMSET, graphNodeId);
  FIELD(MemsetRecord, graph, VENDOR_MEMSET, graphId);
  FIELD(MemsetRecord, channel, VENDOR_MEMSET, channelID);
  FIELD(MemsetRecord, channel_type, VENDOR_MEMSET, channelType);
#if CUPTI_API_VERSION >= 130000
  FIELD(MemsetRecord, device_launched, VENDOR_MEMSET, isDeviceLaunched);
#endif
  FIELD(GraphTraceRecord, kind, VENDOR_GRAPH_TRACE, kind);
  FIELD(GraphTraceRecord, correlation, VENDOR_GRAPH_TRACE, correlationId);
  FIELD(GraphTraceRecord, start_ns, VENDOR_GRAPH_TRACE, start);
  FIELD(GraphTraceRecord, end_ns, VENDOR_GRAPH_TRACE, end);
  FIELD(GraphTraceRecord, device, VENDOR_GRAPH_TRACE, deviceId);
  FIELD(GraphTraceRecord, graph, VENDOR_GRAPH_TRACE, graphId);
  FIELD(GraphTraceRecord, context, VENDOR_GRAPH_TRACE, contextId);
  FIELD(GraphTraceRecord, stream, VENDOR_GRAPH_TRACE, streamId);
  FIELD(ApiRecord, kind, CUpti_ActivityAPI, kind);
  FIELD(ApiRecord, cbid, CUpti_ActivityAPI, cbid);
  FIELD(ApiRecord, start_ns, CUpti_ActivityAPI, start);
  FIELD(ApiRecord, end_ns, CUpti_ActivityAPI, end);
  FIELD(ApiRecord, process, CUpti_ActivityAPI, processId);
  FIELD(ApiRecord, thread, CUpti_ActivityAPI, threadId);
  FIELD(ApiRecord, correlation, CUpti_ActivityAPI, correlationId);
  FIELD(ApiRecord, return_value, CUpti_ActivityAPI, returnValue);
  FIELD(ExternalCorrelationRecord, kind, CUpti_ActivityExternalCorrelation, kind);
  FIELD(ExternalCorrelationRecord, external_kind, CUpti_ActivityExternalCorrelation, externalKind);
  FIELD(ExternalCorrelationRecord, external, CUpti_ActivityExternalCorrelation, externalId);
  FIELD(ExternalCorrelationRecord, correlation, CUpti_ActivityExternalCorrelation, correlationId);
  SIZE(Kernel, VENDOR_KERNEL);
  SIZE(ConcurrentKernel, VENDOR_KERNEL);
  SIZE(Memcpy, VENDOR_MEMCPY);
  SIZE(PeerMemcpy, VENDOR_PEER_MEMCPY);
  SIZE(Memset, VENDOR_MEMSET);
  SIZE(GraphTrace, VENDOR_GRAPH_TRACE);
  SIZE(Driver, CUpti_ActivityAPI);
  SIZE(Runtime, CUpti_ActivityAPI);
  SIZE(ExternalCorrelation, CUpti_ActivityExternalCorrelation);
}

void print_callbacks() {
  FIELD(CallbackData, site, CUpti_CallbackData, callbackSite);
  FIELD(CallbackData, function_name, CUpti_CallbackData, functionName);
  FIELD(CallbackData, function_params, CUpti_CallbackData, functionParams);
  FIELD(CallbackData, function_return_value, CUpti_CallbackData, functionReturnValue);
  FIELD(CallbackData, symbol_name, CUpti_CallbackData, symbolName);
  FIELD(CallbackData, context, CUpti_CallbackData, context);
  FIELD(CallbackData, context_uid, CUpti_CallbackData, contextUid);
  FIELD(CallbackData, correlation_data, CUpti_CallbackData, correlationData);
  FIELD(CallbackData, correlation, CUpti_CallbackData, correlationId);
  FIELD(CaptureParams, stream, cuStreamEndCapture_params, hStream);
  FIELD(CaptureParams, graph, cuStreamEndCapture_params, phGraph);
  FIELD(GraphUpdateParams, exec, cuGraphExecUpdate_v2_params, hGraphExec);
  FIELD(GraphUpdateParams, graph, cuGraphExecUpdate_v2_params, hGraph);
  FIELD(GraphLaunchParams, exec, cuGraphLaunch_params, hGraph);
  FIELD(GraphLaunchParams, stream, cuGraphLaunch_params, hStream);
  FIELD(ResourceData, context, CUpti_ResourceData, context);
  FIELD(ResourceData, stream, CUpti_ResourceData, resourceHandle.stream);
  FIELD(ResourceData, descriptor, CUpti_ResourceData, resourceDescriptor);
  FIELD(GraphData, graph, CUpti_GraphData, graph);
  FIELD(GraphData, original_graph, CUpti_GraphData, originalGraph);
  FIELD(GraphData, node, CUpti_GraphData, node);
  FIELD(GraphData, original_node, CUpti_GraphData, originalNode);
  FIELD(GraphData, node_type, CUpti_GraphData, nodeType);
  FIELD(GraphData, dependency, CUpti_GraphData, dependency);
  FIELD(GraphData, graph_exec, CUpti_GraphData, graphExec);
#if CUPTI_API_VERSION >= 130000
  FIELD(SubscriberParams, struct_size_bytes, CUpti_SubscriberParams, structSize);
  FIELD(SubscriberParams, name, CUpti_SubscriberParams, subscriberName);
  FIELD(SubscriberParams, old_name, CUpti_SubscriberParams, oldSubscriberName);
  FIELD(SubscriberParams, old_name_size_bytes, CUpti_SubscriberParams, oldSubscriberSize);
#endif
#if CUPTI_API_VERSION >= 130200
  FIELD(SubscriberParams, allow_multiple, CUpti_SubscriberParams, allowMultipleSubscribers);
#endif
#if CUPTI_API_VERSION >= 130300
  FIELD(BufferRequestInfo, struct_size_bytes, CUpti_BufferCallbackRequestInfo, structSize);
  FIELD(BufferCompleteInfo, struct_size_bytes, CUpti_BufferCallbackCompleteInfo, structSize);
  FIELD(BufferCompleteInfo, thread, CUpti_BufferCallbackCompleteInfo, threadId);
  FIELD(BufferCompleteInfo, layouts, CUpti_BufferCallbackCompleteInfo, ppRecordLayouts);
  FIELD(BufferCompleteInfo, layout_count, CUpti_BufferCallbackCompleteInfo, numRecordLayouts);
#endif
  SIGNATURE(CuptiGetVersion, cuptiGetVersion);
  SIGNATURE(CuptiGetResultString, cuptiGetResultString);
  SIGNATURE(CuptiSubscribe, cuptiSubscribe);
#if CUPTI_API_VERSION >= 130000
  CONSTANT(kOldSubscriberNameBytes, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);
  SIGNATURE(CuptiSubscribe_v2, cuptiSubscribe_v2);
#endif
  SIGNATURE(CuptiUnsubscribe, cuptiUnsubscribe);
  SIGNATURE(CuptiEnableCallback, cuptiEnableCallback);
  SIGNATURE(CuptiGetCallbackName, cuptiGetCallbackName);
  SIGNATURE(CuptiEnableDomain, cuptiEnableDomain);
  SIGNATURE(CuptiActivityRegisterCallbacks, cuptiActivityRegisterCallbacks);
  SIGNATURE(CuptiActivityEnable, cuptiActivityEnable);
  SIGNATURE(CuptiActivityDisable, cuptiActivityDisable);
  SIGNATURE(CuptiActivityFlushAll, cuptiActivityFlushAll);
  SIGNATURE(CuptiActivityFlushPeriod, cuptiActivityFlushPeriod);
  SIGNATURE(CuptiActivityGetNumDroppedRecords, cuptiActivityGetNumDroppedRecords);
  SIGNATURE(CuptiActivitySetAttribute, cuptiActivitySetAttribute);
  SIGNATURE(CuptiActivityGetAttribute, cuptiActivityGetAttribute);
  SIGNATURE(CuptiActivityGetNextRecord, cuptiActivityGetNextRecord);
#if CUPTI_API_VERSION >= 130200
  SIGNATURE(CuptiActivityGetStructSize, cuptiActivityGetStructSize);
#endif
#if CUPTI_API_VERSION >= 130300
  SIGNATURE(CuptiActivityRegisterCallbacks_v2, cuptiActivityRegisterCallbacks_v2);
  SIGNATURE(CuptiActivityEnable_v2, cuptiActivityEnable_v2);
  SIGNATURE(CuptiActivityDisable_v2, cuptiActivityDisable_v2);
  SIGNATURE(CuptiActivityGetNumDroppedRecords_v2, cuptiActivityGetNumDroppedRecords_v2);
  SIGNATURE(CuptiActivitySetAttribute_v2, cuptiActivitySetAttribute_v2);
  SIGNATURE(CuptiActivityGetAttribute_v2, cuptiActivityGetAttribute_v2);
  SIGNATURE(CuptiActivityGetNextRecord_v2, cuptiActivityGetNextRecord_v2);
  CALLBACK(BufferRequested_v2, CUpti_BuffersCallbackRequestFunc_v2);
  CALLBACK(BufferCompleted_v2, CUpti_BuffersCallbackCompleteFunc_v2);
#endif
  SIGNATURE(CuptiActivityEnableLatencyTimestamps, cuptiActivityEnableLatencyTimestamps);
#if CUPTI_API_VERSION >= 23
  SIGNATURE(CuptiActivityEnableDriverApi, cuptiActivityEnableDriverApi);
#endif
  SIGNATURE(CuptiGetTimestamp, cuptiGetTimestamp);
  SIGNATURE(CuptiGetDeviceId, cuptiGetDeviceId);
  SIGNATURE(CuptiGetContextId, cuptiGetContextId);
  SIGNATURE(CuptiGetStreamIdEx, cuptiGetStreamIdEx);
  SIGNATURE(CuptiGetGraphId, cuptiGetGraphId);
#if CUPTI_API_VERSION >= 21
  SIGNATURE(CuptiGetGraphExecId, cuptiGetGraphExecId);
#endif
  SIGNATURE(CuptiGetGraphNodeId, cuptiGetGraphNodeId);
  SIGNATURE(CuptiSetThreadIdType, cuptiSetThreadIdType);
  CALLBACK(Callback, CUpti_CallbackFunc);
  CALLBACK(BufferRequested, CUpti_BuffersCallbackRequestFunc);
  CALLBACK(BufferCompleted, CUpti_BuffersCallbackCompleteFunc);
}

void print_sampling() {
  VALUE(CollectionMode, Continuous, CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS);
  VALUE(CollectionMode, Serialized, CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED);
  VALUE(SamplingAttribute, Period, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD);
  VALUE(SamplingAttribute, HardwareBufferBytes, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE);
  VALUE(SamplingAttribute, Mode, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE);
  VALUE(SamplingAttribute, StartStopControl, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL);
  VALUE(SamplingAttribute, DataBuffer, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER);
  VALUE(SamplingAttribute, WorkerSleepMs, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_WORKER_THREAD_PERIODIC_SLEEP_SPAN);
  CONSTANT(kMinSamplingPeriod, 5);   // said in a comment of the vendor's header alone
  CONSTANT(kMaxSamplingPeriod, 31);  // likewise
  CONSTANT(kStallReasonNameBytes, CUPTI_STALL_REASON_STRING_SIZE);
  CONSTANT(kPcSamplesBytes, sizeof(CUpti_PCSamplingPCData));
  FIELD(StallSamples, reason, CUpti_PCSamplingStallReason, pcSamplingStallReasonIndex);
  FIELD(StallSamples, samples, CUpti_PCSamplingStallReason, samples);
  FIELD(PcSamples, struct_size_bytes, CUpti_PCSamplingPCData, size);
  FIELD(PcSamples, cubin_crc, CUpti_PCSamplingPCData, cubinCrc);
  FIELD(PcSamples, pc_offset, CUpti_PCSamplingPCData, pcOffset);
  FIELD(PcSamples, function_index, CUpti_PCSamplingPCData, functionIndex);
  FIELD(PcSamples, function_name, CUpti_PCSamplingPCData, functionName);
  FIELD(PcSamples, reason_count, CUpti_PCSamplingPCData, stallReasonCount);
  FIELD(PcSamples, reasons, CUpti_PCSamplingPCData, stallReason);
  FIELD(PcSamples, correlation, CUpti_PCSamplingPCData, correlationId);
  FIELD(SamplingData, struct_size_bytes, CUpti_PCSamplingData, size);
  FIELD(SamplingData, capacity_pcs, CUpti_PCSamplingData, collectNumPcs);
  FIELD(SamplingData, total_samples, CUpti_PCSamplingData, totalSamples);
  FIELD(SamplingData, dropped_samples, CUpti_PCSamplingData, droppedSamples);
  FIELD(SamplingData, pc_count, CUpti_PCSamplingData, totalNumPcs);
  FIELD(SamplingData, remaining_pcs, CUpti_PCSamplingData, remainingNumPcs);
  FIELD(SamplingData, range_id, CUpti_PCSamplingData, rangeId);
  FIELD(SamplingData, pcs, CUpti_PCSamplingData, pPcData);
  FIELD(SamplingData, other_samples, CUpti_PCSamplingData, nonUsrKernelsTotalSamples);
  FIELD(SamplingData, hardware_buffer_full, CUpti_PCSamplingData, hardwareBufferFull);
  FIELD(SamplingParams, struct_size_bytes, CUpti_PCSamplingEnableParams, size);
  FIELD(SamplingParams, context, CUpti_PCSamplingEnableParams, ctx);
  FIELD(SamplingDataParams, struct_size_bytes, CUpti_PCSamplingGetDataParams, size);
  FIELD(SamplingDataParams, context, CUpti_PCSamplingGetDataParams, ctx);
  FIELD(SamplingDataParams, data, CUpti_PCSamplingGetDataParams, pcSamplingData);
  FIELD(SamplingSetting, attribute, CUpti_PCSamplingConfigurationInfo, attributeType);
  FIELD(SamplingSetting, result, CUpti_PCSamplingConfigurationInfo, attributeStatus);
  FIELD(SamplingSetting, value, CUpti_PCSamplingConfigurationInfo, attributeData.hardwareBufferSizeData);
  FIELD(SamplingConfiguration, struct_size_bytes, CUpti_PCSamplingConfigurationInfoParams, size);
  FIELD(SamplingConfiguration, context, CUpti_PCSamplingConfigurationInfoParams, ctx);
  FIELD(SamplingConfiguration, setting_count, CUpti_PCSamplingConfigurationInfoParams, numAttributes);
  FIELD(SamplingConfiguration, settings, CUpti_PCSamplingConfigurationInfoParams, pPCSamplingConfigurationInfo);
  FIELD(ProfilerInitializeParams, struct_size_bytes, CUpti_Profiler_Initialize_Params, structSize);
#if CUPTI_API_VERSION >= 24
  FIELD(CounterAvailabilityParams, struct_size_bytes, CUpti_PmSampling_GetCounterAvailability_Params, structSize);
  FIELD(CounterAvailabilityParams, device, CUpti_PmSampling_GetCounterAvailability_Params, deviceIndex);
  FIELD(CounterAvailabilityParams, image_size_bytes, CUpti_PmSampling_GetCounterAvailability_Params,
        counterAvailabilityImageSize);
  FIELD(CounterAvailabilityParams, image, CUpti_PmSampling_GetCounterAvailability_Params, pCounterAvailabilityImage);
  SIGNATURE(CuptiPmSamplingGetCounterAvailability, cuptiPmSamplingGetCounterAvailability);
#endif
#if CUPTI_API_VERSION >= 24
  VALUE(RangeMode, Auto, CUPTI_AutoRange);
  VALUE(RangeMode, User, CUPTI_UserRange);
  VALUE(ReplayMode, Application, CUPTI_ApplicationReplay);
  VALUE(ReplayMode, Kernel, CUPTI_KernelReplay);
  VALUE(ReplayMode, User, CUPTI_UserReplay);
  CONSTANT(kRangeConfigBytes, CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE);
  CONSTANT(kRangeStopBytes, CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE);
  FIELD(RangeAvailabilityParams, struct_size_bytes, CUpti_Profiler_GetCounterAvailability_Params, structSize);
  FIELD(RangeAvailabilityParams, context, CUpti_Profiler_GetCounterAvailability_Params, ctx);
  FIELD(RangeAvailabilityParams, image_size_bytes, CUpti_Profiler_GetCounterAvailability_Params,
        counterAvailabilityImageSize);
  FIELD(RangeAvailabilityParams, image, CUpti_Profiler_GetCounterAvailability_Params, pCounterAvailabilityImage);
  FIELD(RangeEnableParams, struct_size_bytes, CUpti_RangeProfiler_Enable_Params, structSize);
  FIELD(RangeEnableParams, context, CUpti_RangeProfiler_Enable_Params, ctx);
  FIELD(RangeEnableParams, profiler, CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject);
  FIELD(RangeConfigParams, struct_size_bytes, CUpti_RangeProfiler_SetConfig_Params, structSize);
  FIELD(RangeConfigParams, profiler, CUpti_RangeProfiler_SetConfig_Params, pRangeProfilerObject);
  FIELD(RangeConfigParams, config_bytes, CUpti_RangeProfiler_SetConfig_Params, configSize);
  FIELD(RangeConfigParams, config, CUpti_RangeProfiler_SetConfig_Params, pConfig);
  FIELD(RangeConfigParams, image_bytes, CUpti_RangeProfiler_SetConfig_Params, counterDataImageSize);
  FIELD(RangeConfigParams, image, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage);
  FIELD(RangeConfigParams, range, CUpti_RangeProfiler_SetConfig_Params, range);
  FIELD(RangeConfigParams, replay, CUpti_RangeProfiler_SetConfig_Params, replayMode);
  FIELD(RangeConfigParams, max_ranges, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass);
  FIELD(RangeConfigParams, nesting_levels, CUpti_RangeProfiler_SetConfig_Params, numNestingLevels);
  FIELD(RangeConfigParams, least_nesting_level, CUpti_RangeProfiler_SetConfig_Params, minNestingLevel);
  FIELD(RangeConfigParams, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex);
  FIELD(RangeConfigParams, target_nesting_level, CUpti_RangeProfiler_SetConfig_Params, targetNestingLevel);
  FIELD(RangeProfilerParams, struct_size_bytes, CUpti_RangeProfiler_Start_Params, structSize);
  FIELD(RangeProfilerParams, profiler, CUpti_RangeProfiler_Start_Params, pRangeProfilerObject);
  FIELD(RangeStopParams, struct_size_bytes, CUpti_RangeProfiler_Stop_Params, structSize);
  FIELD(RangeStopParams, profiler, CUpti_RangeProfiler_Stop_Params, pRangeProfilerObject);
  FIELD(RangeStopParams, pass, CUpti_RangeProfiler_Stop_Params, passIndex);
  FIELD(RangeStopParams, target_nesting_level, CUpti_RangeProfiler_Stop_Params, targetNestingLevel);
  FIELD(RangeStopParams, all_passes_submitted, CUpti_RangeProfiler_Stop_Params, isAllPassSubmitted);
  FIELD(RangeDecodeParams, struct_size_bytes, CUpti_RangeProfiler_DecodeData_Params, structSize);
  FIELD(RangeDecodeParams, profiler, CUpti_RangeProfiler_DecodeData_Params, pRangeProfilerObject);
  FIELD(RangeDecodeParams, dropped_ranges, CUpti_RangeProfiler_DecodeData_Params, numOfRangeDropped);
  FIELD(RangeDataSizeParams, struct_size_bytes, CUpti_RangeProfiler_GetCounterDataSize_Params, structSize);
  FIELD(RangeDataSizeParams, profiler, CUpti_RangeProfiler_GetCounterDataSize_Params, pRangeProfilerObject);
  FIELD(RangeDataSizeParams, names, CUpti_RangeProfiler_GetCounterDataSize_Params, pMetricNames);
  FIELD(RangeDataSizeParams, count, CUpti_RangeProfiler_GetCounterDataSize_Params, numMetrics);
  FIELD(RangeDataSizeParams, max_ranges, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumOfRanges);
  FIELD(RangeDataSizeParams, max_tree_nodes, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes);
  FIELD(RangeDataSizeParams, size_bytes, CUpti_RangeProfiler_GetCounterDataSize_Params, counterDataSize);
  FIELD(RangeImageParams, struct_size_bytes, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, structSize);
  FIELD(RangeImageParams, profiler, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pRangeProfilerObject);
  FIELD(RangeImageParams, size_bytes, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, counterDataSize);
  FIELD(RangeImageParams, image, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pCounterData);
  FIELD(RangeDataInfoParams, struct_size_bytes, CUpti_RangeProfiler_GetCounterDataInfo_Params, structSize);
  FIELD(RangeDataInfoParams, image, CUpti_RangeProfiler_GetCounterDataInfo_Params, pCounterDataImage);
  FIELD(RangeDataInfoParams, size_bytes, CUpti_RangeProfiler_GetCounterDataInfo_Params, counterDataImageSize);
  FIELD(RangeDataInfoParams, ranges, CUpti_RangeProfiler_GetCounterDataInfo_Params, numTotalRanges);
  SIGNATURE(CuptiRangeProfilerEnable, cuptiRangeProfilerEnable);
  SIGNATURE(CuptiRangeProfilerSetConfig, cuptiRangeProfilerSetConfig);
  SIGNATURE(CuptiRangeProfilerStart, cuptiRangeProfilerStart);
  SIGNATURE(CuptiRangeProfilerStop, cuptiRangeProfilerStop);
  SIGNATURE(CuptiRangeProfilerDisable, cuptiRangeProfilerDisable);
  SIGNATURE(CuptiRangeProfilerGetCounterDataSize, cuptiRangeProfilerGetCounterDataSize);
  SIGNATURE(CuptiRangeProfilerCounterDataImageInitialize, cuptiRangeProfilerCounterDataImageInitialize);
  SIGNATURE(CuptiRangeProfilerDecodeData, cuptiRangeProfilerDecodeData);
  SIGNATURE(CuptiRangeProfilerGetCounterDataInfo, cuptiRangeProfilerGetCounterDataInfo);
  CONSTANT(kOfWholeGpu, CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU);
  CONSTANT(kSassConfigBytes, CUpti_SassMetricsSetConfig_Params_STRUCT_SIZE);
  CONSTANT(kSassUnsetBytes, CUpti_SassMetricsUnsetConfig_Params_STRUCT_SIZE);
  CONSTANT(kSassEnableBytes, CUpti_SassMetricsEnable_Params_STRUCT_SIZE);
  CONSTANT(kSassFlushBytes, CUpti_SassMetricsFlushData_Params_STRUCT_SIZE);
  FIELD(SassMetricParams, struct_size_bytes, CUpti_SassMetrics_GetProperties_Params, structSize);
  FIELD(SassMetricParams, chip, CUpti_SassMetrics_GetProperties_Params, pChipName);
  FIELD(SassMetricParams, name, CUpti_SassMetrics_GetProperties_Params, pMetricName);
  FIELD(SassMetricParams, metric, CUpti_SassMetrics_GetProperties_Params, metric.metricId);
  FIELD(SassMetricParams, listed_name, CUpti_SassMetrics_GetProperties_Params, metric.pMetricName);
  FIELD(SassMetricParams, description, CUpti_SassMetrics_GetProperties_Params, metric.pMetricDescription);
  FIELD(SassMetricConfig, metric, CUpti_SassMetrics_Config, metricId);
  FIELD(SassMetricConfig, granularity, CUpti_SassMetrics_Config, outputGranularity);
  FIELD(SassConfigParams, struct_size_bytes, CUpti_SassMetricsSetConfig_Params, structSize);
  FIELD(SassConfigParams, count, CUpti_SassMetricsSetConfig_Params, numOfMetricConfig);
  FIELD(SassConfigParams, configs, CUpti_SassMetricsSetConfig_Params, pConfigs);
  FIELD(SassConfigParams, device, CUpti_SassMetricsSetConfig_Params, deviceIndex);
  FIELD(SassUnsetParams, struct_size_bytes, CUpti_SassMetricsUnsetConfig_Params, structSize);
  FIELD(SassUnsetParams, device, CUpti_SassMetricsUnsetConfig_Params, deviceIndex);
  FIELD(SassEnableParams, struct_size_bytes, CUpti_SassMetricsEnable_Params, structSize);
  FIELD(SassEnableParams, context, CUpti_SassMetricsEnable_Params, ctx);
  FIELD(SassEnableParams, patches_at_launch, CUpti_SassMetricsEnable_Params, enableLazyPatching);
  FIELD(SassDisableParams, struct_size_bytes, CUpti_SassMetricsDisable_Params, structSize);
  FIELD(SassDisableParams, context, CUpti_SassMetricsDisable_Params, ctx);
  FIELD(SassDisableParams, dropped_records, CUpti_SassMetricsDisable_Params, numOfDroppedRecords);
  FIELD(SassDataParams, struct_size_bytes, CUpti_SassMetricsGetDataProperties_Params, structSize);
  FIELD(SassDataParams, context, CUpti_SassMetricsGetDataProperties_Params, ctx);
  FIELD(SassDataParams, records, CUpti_SassMetricsGetDataProperties_Params, numOfPatchedInstructionRecords);
  FIELD(SassDataParams, values, CUpti_SassMetricsGetDataProperties_Params, numOfInstances);
  FIELD(SassValue, metric, CUpti_SassMetrics_InstanceValue, metricId);
  FIELD(SassValue, value, CUpti_SassMetrics_InstanceValue, value);
  FIELD(SassRecord, struct_size_bytes, CUpti_SassMetrics_Data, structSize);
  FIELD(SassRecord, cubin_crc, CUpti_SassMetrics_Data, cubinCrc);
  FIELD(SassRecord, function_index, CUpti_SassMetrics_Data, functionIndex);
  FIELD(SassRecord, function, CUpti_SassMetrics_Data, functionName);
  FIELD(SassRecord, pc_offset, CUpti_SassMetrics_Data, pcOffset);
  FIELD(SassRecord, values, CUpti_SassMetrics_Data, pInstanceValues);
  FIELD(SassFlushParams, struct_size_bytes, CUpti_SassMetricsFlushData_Params, structSize);
  FIELD(SassFlushParams, context, CUpti_SassMetricsFlushData_Params, ctx);
  FIELD(SassFlushParams, records, CUpti_SassMetricsFlushData_Params, numOfPatchedInstructionRecords);
  FIELD(SassFlushParams, values, CUpti_SassMetricsFlushData_Params, numOfInstances);
  FIELD(SassFlushParams, data, CUpti_SassMetricsFlushData_Params, pMetricsData);
  SIGNATURE(CuptiSassMetricsGetProperties, cuptiSassMetricsGetProperties);
  SIGNATURE(CuptiSassMetricsSetConfig, cuptiSassMetricsSetConfig);
  SIGNATURE(CuptiSassMetricsUnsetConfig, cuptiSassMetricsUnsetConfig);
  SIGNATURE(CuptiSassMetricsEnable, cuptiSassMetricsEnable);
  SIGNATURE(CuptiSassMetricsDisable, cuptiSassMetricsDisable);
  SIGNATURE(CuptiSassMetricsGetDataProperties, cuptiSassMetricsGetDataProperties);
  SIGNATURE(CuptiSassMetricsFlushData, cuptiSassMetricsFlushData);
  SIGNATURE(CuptiProfilerGetCounterAvailability, cuptiProfilerGetCounterAvailability);
#endif
  SIGNATURE(CuptiProfilerInitialize, cuptiProfilerInitialize);
  FIELD(StallReasonCount, struct_size_bytes, CUpti_PCSamplingGetNumStallReasonsParams, size);
  FIELD(StallReasonCount, context, CUpti_PCSamplingGetNumStallReasonsParams, ctx);
  FIELD(StallReasonCount, count, CUpti_PCSamplingGetNumStallReasonsParams, numStallReasons);
  FIELD(StallReasonNames, struct_size_bytes, CUpti_PCSamplingGetStallReasonsParams, size);
  FIELD(StallReasonNames, context, CUpti_PCSamplingGetStallReasonsParams, ctx);
  FIELD(StallReasonNames, count, CUpti_PCSamplingGetStallReasonsParams, numStallReasons);
  FIELD(StallReasonNames, numbers, CUpti_PCSamplingGetStallReasonsParams, stallReasonIndex);
  FIELD(StallReasonNames, names, CUpti_PCSamplingGetStallReasonsParams, stallReasons);
  FIELD(CubinCrcParams, struct_size_bytes, CUpti_GetCubinCrcParams, size);
  FIELD(CubinCrcParams, cubin_size_bytes, CUpti_GetCubinCrcParams, cubinSize);
  FIELD(CubinCrcParams, cubin, CUpti_GetCubinCrcParams, cubin);
  FIELD(CubinCrcParams, crc, CUpti_GetCubinCrcParams, cubinCrc);
  FIELD(ModuleData, id, CUpti_ModuleResourceData, moduleId);
  FIELD(ModuleData, cubin_size_bytes, CUpti_ModuleResourceData, cubinSize);
  FIELD(ModuleData, cubin, CUpti_ModuleResourceData, pCubin);
  SIGNATURE(CuptiPCSamplingEnable, cuptiPCSamplingEnable);
  SIGNATURE(CuptiPCSamplingDisable, cuptiPCSamplingDisable);
  SIGNATURE(CuptiPCSamplingStart, cuptiPCSamplingStart);
  SIGNATURE(CuptiPCSamplingStop, cuptiPCSamplingStop);
  SIGNATURE(CuptiPCSamplingGetData, cuptiPCSamplingGetData);
  SIGNATURE(CuptiPCSamplingSetConfigurationAttribute, cuptiPCSamplingSetConfigurationAttribute);
  SIGNATURE(CuptiPCSamplingGetNumStallReasons, cuptiPCSamplingGetNumStallReasons);
  SIGNATURE(CuptiPCSamplingGetStallReasons, cuptiPCSamplingGetStallReasons);
  SIGNATURE(CuptiGetCubinCrc, cuptiGetCubinCrc);
}

void print_cbids() {
  const auto describe = [](uint32_t cbid) {
    for (const ours::DriverCall& call : bragg::fake::other_calls) {
      if (call.cbid == cbid) return "fake " + std::string(call.name);
    }
    const char* table = ours::is_launch(cbid)                             ? "launch "
                        : ours::is_memory(cbid)                           ? "memory "
                        : ours::graph_call(cbid) != ours::GraphCall::None ? "graph "
                        : ours::is_for_sampling(cbid)                     ? "sampling "
                                                                          : "none -";
    return table + std::string(ours::driver_call_name(cbid));
  };
#define PRINT_CBID(name) std::printf("cbid %s %s\n", #name, describe(CUPTI_DRIVER_TRACE_CBID_##name).c_str());
  FOR_EACH_CBID(PRINT_CBID)
}

}  // namespace

int main() {
  row("version", CUPTI_API_VERSION, CUPTI_API_VERSION);
  print_cuda();
  print_enums();
  print_records();
  print_callbacks();
  print_sampling();
  print_cbids();
}
