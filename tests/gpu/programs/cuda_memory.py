"""Known memory from CUDA itself, beside PyTorch's allocator, whose segments are not part of it."""

from __future__ import annotations

import ctypes

import torch

import bragg

MIB = 1 << 20
torch.cuda.init()
cuda = ctypes.CDLL("libcudart.so.13")


def take(call: str, size: int, *stream: object) -> ctypes.c_void_p:
    address = ctypes.c_void_p()
    assert getattr(cuda, call)(ctypes.byref(address), ctypes.c_size_t(size), *stream) == 0
    return address


class Properties(ctypes.Structure):
    """Of memory that is created by a handle: pinned, on the first GPU."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("handle_types", ctypes.c_uint32),
        ("location", ctypes.c_uint32 * 2),
        ("rest", ctypes.c_uint64 * 2),
    )


def create_and_map(size: int) -> ctypes.c_uint64:
    """An address of new memory, which only that address keeps."""
    driver = ctypes.CDLL("libcuda.so.1")
    handle, address, zero = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint64()
    properties, length = Properties(type=1, location=(1, 0)), ctypes.c_size_t(size)
    assert driver.cuMemCreate(ctypes.byref(handle), length, ctypes.byref(properties), zero) == 0
    assert driver.cuMemAddressReserve(ctypes.byref(address), length, zero, zero, zero) == 0
    assert driver.cuMemMap(address, length, zero, handle, zero) == 0
    assert driver.cuMemRelease(handle) == 0
    return address


def unmap(address: ctypes.c_uint64, size: int) -> None:
    assert ctypes.CDLL("libcuda.so.1").cuMemUnmap(address, ctypes.c_size_t(size)) == 0


with bragg.scope("tensors"):
    tensors = [torch.zeros(64 * MIB, device="cuda", dtype=torch.uint8) for _ in range(3)]
with bragg.scope("plain"):
    plain = take("cudaMalloc", 96 * MIB)
with bragg.scope("pool"):
    pooled = take("cudaMallocAsync", 32 * MIB, None)
    torch.cuda.synchronize()
    assert cuda.cudaFreeAsync(pooled, None) == 0
with bragg.scope("freed"):
    for _ in range(4):
        assert cuda.cudaFree(take("cudaMalloc", 16 * MIB)) == 0
with bragg.scope("managed"):
    managed = take("cudaMallocManaged", 8 * MIB, ctypes.c_uint(1))
with bragg.scope("mapped"):
    mapped = create_and_map(20 * MIB)
with bragg.scope("unmapped"):
    unmap(create_and_map(6 * MIB), 6 * MIB)
print("reserved", torch.cuda.memory_reserved())
