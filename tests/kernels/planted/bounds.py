"""Planted accesses outside of their tensor, and past the end of a row."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tests.kernels.planted.table import bug, floats, integers


def view(rows: int, columns: int, width: int) -> Callable[[], Any]:
    return lambda: np.ones((rows, width), "f4")[:, :columns]


@bug("out-of-bounds", floats(1000), 1000, tensor="x", programs={3}, B=256)
@triton.jit
def no_mask_at_the_end(x, n, B: tl.constexpr):
    tl.store(x + tl.program_id(0) * B + tl.arange(0, B), 0.0)  # bug


@bug("out-of-bounds", floats(1000), floats(1024), 1000, tensor="x", programs={3}, B=256)
@triton.jit
def mask_one_too_far(x, out, n, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    values = tl.load(x + offsets, mask=offsets <= n, other=0.0)  # bug
    tl.store(out + offsets, values)


@bug("out-of-bounds", floats(1024), floats(1024), tensor="x", programs={0}, B=256)
@triton.jit
def starts_before_the_tensor(x, out, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + offsets, tl.load(x + offsets - 1))  # bug


@bug("out-of-bounds", floats(64), tensor="x", programs={3}, B=64)
@triton.jit
def only_in_one_branch(x, B: tl.constexpr):
    pid = tl.program_id(0)
    if pid == 3:
        tl.load(x + pid * B + tl.arange(0, B))  # bug


@bug("out-of-bounds", lambda: np.array([0, 100, 0, 60], "i4"), floats(64), tensor="x", programs={1, 3})
@triton.jit
def behind_a_loaded_condition(flags, x):
    if tl.load(flags + tl.program_id(0)) > 50:
        tl.load(x + 64 + tl.program_id(0))  # bug


@bug("out-of-bounds", lambda: np.array([0, 3, 64, 1], "i4"), floats(64), tensor="x", programs={2})
@triton.jit
def one_bad_index(index, x):
    tl.load(x + tl.load(index + tl.program_id(0)))  # bug


@bug("out-of-bounds", lambda: np.array([0, -1, 2, 1], "i8"), floats(4, 16), floats(4, 16), tensor="x", programs={1})
@triton.jit
def padding_index_of_minus_one(index, x, out):
    row = tl.load(index + tl.program_id(0))
    columns = tl.arange(0, 16)
    values = tl.load(x + row * 16 + columns)  # bug
    tl.store(out + tl.program_id(0) * 16 + columns, values)


@bug("out-of-bounds", integers(10), tensor="counts", programs={3})
@triton.jit
def atomic_beyond_the_end(counts):
    tl.atomic_add(counts + tl.program_id(0) * 4, 1)  # bug


@bug("out-of-bounds", integers(2), tensor="lock", programs={2, 3})
@triton.jit
def compare_and_swap_beyond_the_end(lock):
    tl.atomic_cas(lock + tl.program_id(0), 0, 1)  # bug


@bug("out-of-bounds", lambda: np.arange(64, dtype="i4"), integers(63), tensor="counts", programs={1}, grid=(2,))
@triton.jit
def histogram_with_one_bin_too_few(x, counts):
    value = tl.load(x + tl.program_id(0) * 32 + tl.arange(0, 32))
    tl.atomic_add(counts + value, 1)  # bug


@bug("out-of-bounds", view(8, 50, 64), floats(8, 64), 64, tensor="x", programs=range(7), grid=(8,), B=64)
@triton.jit
def spills_into_the_rest_of_the_row(x, out, stride, B: tl.constexpr):
    columns = tl.arange(0, B)
    row = tl.program_id(0)
    values = tl.load(x + row * stride + columns, mask=columns < 51, other=0.0)  # bug
    tl.store(out + row * stride + columns, values)


@bug("out-of-bounds", view(8, 50, 64), 64, 50, tensor="x", programs=range(7), grid=(8,), B=64)
@triton.jit
def writes_the_padding_of_a_view(x, stride, n, B: tl.constexpr):
    columns = tl.arange(0, B)
    tl.store(x + tl.program_id(0) * stride + columns, 0.0, mask=columns < stride)  # bug


@bug("out-of-bounds", floats(8, 100), floats(8, 128), 100, tensor="x", programs=range(7), grid=(7,), B=128)
@triton.jit
def row_that_runs_into_the_next_one(x, out, stride, B: tl.constexpr):
    columns = tl.arange(0, B)
    row = tl.program_id(0)
    values = tl.load(x + row * stride + columns, mask=columns < 104, other=0.0)  # bug
    tl.store(out + row * B + columns, values)


@bug("out-of-bounds", floats(33, 50), floats(32), 50, tensor="a", programs={0, 1}, grid=(2,), B=16)
@triton.jit
def last_block_of_k_without_mask(a, out, K, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for start in range(0, K, B):
        ks = start + tl.arange(0, B)
        total += tl.sum(tl.load(a + rows[:, None] * K + ks[None, :]), 1)  # bug
    tl.store(out + rows, total)


@bug("out-of-bounds", floats(9, 60), 60, tensor="x", programs=range(8), grid=(8,), B=64)
@triton.jit
def stores_that_overwrite_the_next_row(x, n, B: tl.constexpr):
    columns = tl.arange(0, B)
    place = tl.program_id(0) * n + columns
    tl.store(x + place, 1.0, mask=place < 9 * n)  # bug


@bug("out-of-bounds", floats(50, 50), 50, 50, tensor="x", programs=range(12, 16), grid=(4, 4), B=16)
@triton.jit
def block_pointer_that_checks_one_boundary(x, M, N, B: tl.constexpr):
    place = (tl.program_id(1) * B, tl.program_id(0) * B)
    tl.load(tl.make_block_ptr(x, (M, N), (N, 1), place, (B, B), (1, 0)), boundary_check=(1,))  # bug


@bug("out-of-bounds", floats(40, 48), 64, 48, tensor="x", programs={2, 3}, grid=(4,), B=16)
@triton.jit
def descriptor_of_more_rows_than_there_are(x, M, N, B: tl.constexpr):
    window = tl.make_tensor_descriptor(x, [M, N], [N, 1], [B, B])
    window.load([tl.program_id(0) * B, 0])  # bug


@bug("out-of-bounds", floats(100), 3, tensor="x", programs={0}, grid=(1,), B=64)
@triton.jit
def one_trip_too_many(x, trips, B: tl.constexpr):
    for i in range(trips):
        offsets = i * B + tl.arange(0, B)
        tl.load(x + offsets, mask=offsets < 128, other=0.0)  # bug


@bug("out-of-bounds", floats(32, 32), 32, tensor="x", programs={1, 3}, grid=(2, 2), B=16)
@triton.jit
def rows_and_columns_with_one_wrong_stride(x, n, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    columns = tl.program_id(1) * B + tl.arange(0, B)
    tl.load(x + rows[:, None] * (n + 1) + columns[None, :])  # bug


@bug("out-of-bounds", floats(40, 24), floats(40, 24), 40, 24, tensor="out", programs={2}, grid=(3,), B=16)
@triton.jit
def mask_of_the_other_axis(x, out, M, N, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    columns = tl.arange(0, 32)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    values = tl.load(x + rows[:, None] * N + columns[None, :], mask=mask, other=0.0)
    tl.store(out + rows[:, None] * N + columns[None, :], values, mask=columns[None, :] < N)  # bug


@bug("out-of-bounds", floats(64), integers(1, 40), tensor="x", programs={0, 1, 2, 3})
@triton.jit
def while_that_goes_on_too_long(x, count):
    i = 0
    end = tl.load(count)
    while i <= end:
        tl.load(x + tl.program_id(0) + i * 2)  # bug
        i += 1


@triton.jit
def _address(x, row, column):
    return x + row * 8 + column


@bug("out-of-bounds", floats(4, 8), tensor="x", programs={3})
@triton.jit
def address_made_by_a_function(x):
    tl.load(_address(x, tl.program_id(0) + 1, 0))  # bug


@bug("out-of-bounds", floats(8, 8), floats(8, 8), tensor="x", programs={0}, grid=(1,))
@triton.jit
def neighbour_above_the_first_row(x, out):
    rows, columns = tl.arange(0, 8)[:, None], tl.arange(0, 8)[None, :]
    above = tl.load(x + (rows - 1) * 8 + columns, mask=columns < 8, other=0.0)  # bug
    tl.store(out + rows * 8 + columns, above)


@bug("out-of-bounds", floats(4, 8), integers(4), 8, tensor="x", programs=range(4))
@triton.jit
def search_for_what_is_not_there(x, out, width):
    row = tl.program_id(0)
    i = 0
    while tl.load(x + row * width + i) != 0:  # bug
        i += 1
    tl.store(out + row, i)
