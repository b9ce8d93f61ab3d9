"""The Triton kernels of the cubins in this directory."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def scale_rows(values, factor):
    shifted = values - tl.max(values, axis=0)
    return tl.exp(shifted) * factor


@triton.jit
def softmax(out, x, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + columns, mask=columns < n, other=-float("inf"))
    values = scale_rows(values, 1.0)
    tl.store(out + row * stride + columns, values / tl.sum(values, axis=0), mask=columns < n)


@triton.jit(noinline=True)
def apart(v):
    return v * tl.exp(v) + 2


@triton.jit
def with_call(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, v / apart(tl.sum(v, 0)))
