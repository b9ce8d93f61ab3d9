"""Threads of one program that do not wait for each other."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.kernels.planted.table import bug, floats


@bug("missing-barrier", floats(4, 256), tensor="x", B=256)
@triton.jit
def row_reversed_in_place(x, B: tl.constexpr):
    row, i = x + tl.program_id(0) * B, tl.arange(0, B)
    value = tl.load(row + i)
    tl.store(row + B - 1 - i, value)  # bug


@bug("missing-barrier", floats(4, 256), floats(4, 256), tensor="out", B=256)
@triton.jit
def neighbour_of_what_was_stored(x, out, B: tl.constexpr):
    place, i = tl.program_id(0) * B, tl.arange(0, B)
    tl.store(out + place + i, tl.load(x + place + i) * 2)
    left = tl.load(out + place + i - 1, mask=i > 0, other=0.0)  # bug
    tl.store(x + place + i, left)


@bug("missing-barrier", floats(4, 256), tensor="x", B=256)
@triton.jit
def row_divided_by_its_first_element(x, B: tl.constexpr):
    row, i = x + tl.program_id(0) * B, tl.arange(0, B)
    first = tl.load(row)
    tl.store(row + i, tl.load(row + i) / first)  # bug


@bug("missing-barrier", lambda: np.arange(256, dtype="i4")[::-1].copy(), floats(256), tensor="out", grid=(1,), B=256)
@triton.jit
def zeros_before_a_scatter(index, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, 0.0)
    tl.store(out + tl.load(index + i), 1.0)  # bug


@bug("missing-barrier", floats(4, 256), floats(4, 256), tensor="sums", B=256)
@triton.jit
def halves_after_a_barrier_of_some(x, sums, B: tl.constexpr):
    place, i = tl.program_id(0) * B, tl.arange(0, B)
    tl.store(sums + place + i, tl.load(x + place + i))
    if tl.program_id(0) > 1:
        tl.debug_barrier()
    half = tl.arange(0, B // 2)
    tl.store(x + place + half, tl.load(sums + place + B // 2 + half))  # bug
