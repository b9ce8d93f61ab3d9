"""A program with no framework: 25 kernels, 10 sets and 5 copies through the driver API, so that no CUPTI is mapped."""

from __future__ import annotations

import ctypes

import bragg

PTX = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n"
cuda = ctypes.CDLL("libcuda.so.1")


def call(function: str, *arguments: object) -> None:
    status = getattr(cuda, function)(*arguments)
    assert status == 0, f"{function}: {status}"


call("cuInit", 0)
context, module, kernel, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", ctypes.byref(module), PTX)
call("cuModuleGetFunction", ctypes.byref(kernel), module, b"nothing")
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(4096))
host = ctypes.create_string_buffer(4096)
with bragg.scope("driver"):
    for _ in range(25):
        call("cuLaunchKernel", kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None)
    for _ in range(10):
        call("cuMemsetD32_v2", memory, 7, ctypes.c_size_t(1024))
    for _ in range(5):
        call("cuMemcpyDtoH_v2", host, memory, ctypes.c_size_t(4096))
    call("cuCtxSynchronize")
