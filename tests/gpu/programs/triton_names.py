"""Specializations of a kernel, and a kernel that describes its launches."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import bragg


def describe(grid, kernel, arguments):
    return {"name": f"scale_{arguments['n']}", "flops32": float(arguments["n"]), "bytes": 8 * arguments["n"]}


@triton.jit
def copy(source, target, n, block_n: tl.constexpr):
    offsets = tl.arange(0, block_n)
    tl.store(target + offsets, tl.load(source + offsets, mask=offsets < n), mask=offsets < n)


@triton.jit(launch_metadata=describe)
def scale(x, n, block_n: tl.constexpr):
    offsets = tl.arange(0, block_n)
    tl.store(x + offsets, tl.load(x + offsets) * 2)


def main() -> None:
    x = torch.ones(1024, device="cuda")
    y = torch.ones(1024, device="cuda", dtype=torch.bfloat16)
    copy[(1,)](x, x, 1024, block_n=64)
    with bragg.scope("copies"):
        for _ in range(10):
            copy[(1,)](x, x, 1024, block_n=64)
            copy[(1,)](x, x, 1024, block_n=128, num_warps=8)
            copy[(1,)](y, y, 1024, block_n=64)
            copy[(1,)](x[1:], x, 1023, block_n=64)
    with bragg.scope("scales"):
        for n in (64, 128):
            scale[(1,)](x, n, block_n=64)
    torch.cuda.synchronize()


main()
