"""Kernels of the workloads: Triton reads their source, so they need a file."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def increment(x, count: tl.constexpr):  # type: ignore[no-untyped-def]
    """Add one to each of `count` elements."""
    offsets = tl.arange(0, count)
    tl.store(x + offsets, tl.load(x + offsets) + 1)
