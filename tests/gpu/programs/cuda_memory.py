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
print("reserved", torch.cuda.memory_reserved())
