"""Kernels of the workloads: Triton reads their source, so they need a file."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.jit
def increment(x: Any, count: tl.constexpr) -> None:
    """Add one to each of `count` elements."""
    offsets = tl.arange(0, count)
    tl.store(x + offsets, tl.load(x + offsets) + 1)
