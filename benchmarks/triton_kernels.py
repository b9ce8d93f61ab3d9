"""Kernels of the workloads: Triton reads their source, so they need a file."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def increment(x, count: tl.constexpr):  # type: ignore[no-untyped-def]
    """Add one to each of `count` elements."""
    offsets = tl.arange(0, count)
    tl.store(x + offsets, tl.load(x + offsets) + 1)


@triton.jit(do_not_specialize=["n"])
def events(x, n, count: tl.constexpr):  # type: ignore[no-untyped-def]
    """Store `count` elements `n` times, with some arithmetic before each store."""
    at = tl.program_id(0) * count + tl.arange(0, count)
    value = at.to(tl.float32)
    for _ in tl.range(n, loop_unroll_factor=1):
        for _ in tl.static_range(16):
            value = value * 1.0001 + 0.5
        tl.store(x + at, value)
