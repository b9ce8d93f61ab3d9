"""Planted reads of what nobody wrote, divisions by zero, overflows and numbers that are none."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.kernels.planted.table import bug, empty, floats, integers


@bug("uninitialised-read", floats(1000), floats(1024), 1000, tensor="x", programs={3}, B=256)
@triton.jit
def stores_lanes_that_were_not_loaded(x, out, n, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    values = tl.load(x + offsets, mask=offsets < n)  # bug
    tl.store(out + offsets, values)


@bug("uninitialised-read", floats(1000), floats(4), 1000, tensor="x", programs={3}, B=256)
@triton.jit
def sums_lanes_that_were_not_loaded(x, out, n, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.sum(tl.load(x + offsets, mask=offsets < n), 0)  # bug
    tl.store(out + tl.program_id(0), total)


@bug("uninitialised-read", floats(1000), floats(1), 1000, tensor="x", programs={3}, B=256)
@triton.jit
def adds_lanes_that_were_not_loaded(x, out, n, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.sum(tl.load(x + offsets, mask=offsets < n), 0)  # bug
    tl.atomic_add(out, total)


@bug("uninitialised-read", floats(30, 32), floats(32, 16), floats(32, 16), tensor="a", programs={0}, grid=(1,))
@triton.jit
def multiplies_rows_that_were_not_loaded(a, b, out):
    rows, k, n = tl.arange(0, 32), tl.arange(0, 32), tl.arange(0, 16)
    left = tl.load(a + rows[:, None] * 32 + k[None, :], mask=rows[:, None] < 30)  # bug
    right = tl.load(b + k[:, None] * 16 + n[None, :])
    tl.store(out + rows[:, None] * 16 + n[None, :], tl.dot(left, right))


@bug("uninitialised-read", floats(1000), floats(4), 1000, tensor="x", programs={3}, B=256)
@triton.jit
def decides_by_lanes_that_were_not_loaded(x, out, n, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    greatest = tl.max(tl.load(x + offsets, mask=offsets < n), 0)  # bug
    if greatest > 0:
        tl.store(out + tl.program_id(0), 1.0)


@bug("uninitialised-read", integers(20), floats(64), floats(32), 20, tensor="index", programs={0}, grid=(1,))
@triton.jit
def addresses_of_lanes_that_were_not_loaded(index, x, out, n):
    i = tl.arange(0, 32)
    rows = tl.load(index + i, mask=i < n)  # bug
    values = tl.load(x + rows)
    tl.store(out + i, values)


@bug("uninitialised-read", floats(20), floats(2), floats(32), 20, tensor="x", programs={0}, grid=(1,))
@triton.jit
def looks_up_by_lanes_that_were_not_loaded(x, table, out, n):
    i = tl.arange(0, 32)
    values = tl.load(x + i, mask=i < n)  # bug
    tl.store(out + i, tl.load(table + tl.where(values > 0.5, 1, 0)))


@bug("uninitialised-read", floats(20), floats(1), 20, tensor="x", programs={0}, grid=(1,))
@triton.jit
def counts_lanes_that_were_not_loaded(x, out, n):
    i = tl.arange(0, 32)
    values = tl.load(x + i, mask=i < n)  # bug
    tl.store(out, tl.sum(tl.where(values == 0.5, 1, 0), 0))


@bug("uninitialised-read", floats(20), floats(64), 20, tensor="x", programs={0}, grid=(1,))
@triton.jit
def scatters_by_lanes_that_were_not_loaded(x, out, n):
    i = tl.arange(0, 32)
    values = tl.load(x + i, mask=i < n)  # bug
    tl.store(out + i + 32 * (values > 0.5).to(tl.int32), values, mask=i < 20)
    tl.store(out + i + 32 * (values > 0.5).to(tl.int32), 1.0)


@bug("uninitialised-read", floats(20), integers(20), floats(64), floats(32), 20, tensor="index", grid=(1,))
@triton.jit
def chooses_among_lanes_that_were_not_loaded(x, index, table, out, n):
    i = tl.arange(0, 32)
    values = tl.load(x + i, mask=i < n)
    rows = tl.load(index + i, mask=i < n)  # bug
    tl.store(out + i, tl.load(table + tl.where(values > 0.5, rows, 0)), mask=i < n)


@bug("uninitialised-read", floats(8, 50), floats(8, 50), 50, tensor="x", programs=range(8), grid=(8,), B=64)
@triton.jit
def softmax_over_lanes_that_were_not_loaded(x, out, n, B: tl.constexpr):
    columns = tl.arange(0, B)
    mask = columns < n
    values = tl.exp(tl.load(x + tl.program_id(0) * n + columns, mask=mask))  # bug
    tl.store(out + tl.program_id(0) * n + columns, values / tl.sum(values, 0), mask=mask)


@bug("uninitialised-read", empty(1024), floats(1024), tensor="x", programs=range(4), B=256)
@triton.jit
def reads_an_empty_tensor(x, out, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    values = tl.load(x + offsets)  # bug
    tl.store(out + offsets, values)


@bug("uninitialised-read", floats(64), empty(64), tensor="total", programs=range(4))
@triton.jit
def adds_to_an_empty_tensor(x, total):
    offsets = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.atomic_add(total + offsets, tl.load(x + offsets))  # bug


@bug("uninitialised-read", empty(64), floats(64), tensor="x", programs={3})
@triton.jit
def reads_what_was_written_in_part(x, out):
    offsets = tl.program_id(0) * 16 + tl.arange(0, 16)
    if tl.program_id(0) != 3:
        tl.store(x + offsets, 1.0)
    values = tl.load(x + offsets)  # bug
    tl.store(out + offsets, values)


@bug("integer-overflow", floats(64), 1 << 30, tensor="x", programs={2, 3})
@triton.jit
def row_times_stride_in_32_bits(x, stride):
    offset = tl.program_id(0) * stride  # bug
    tl.load(x + offset, mask=offset == 0, other=0.0)


@bug("integer-overflow", floats(64), 2_000_000_000, tensor="x", programs={2, 3})
@triton.jit
def sum_of_offsets_in_32_bits(x, base):
    offsets = base + tl.program_id(0) * 100_000_000 + tl.arange(0, 16)  # bug
    tl.load(x + offsets, mask=offsets < 64, other=0.0)


@bug("integer-overflow", floats(64), 70_000, tensor="x", programs={1, 2, 3})
@triton.jit
def square_of_a_row_number_in_32_bits(x, n):
    rows = tl.program_id(0) * n
    place = rows * n + tl.arange(0, 16)  # bug
    tl.load(x + place, mask=(place >= 0) & (place < 64), other=0.0)


@bug("integer-overflow", lambda: np.full(64, 100, "i1"), integers(64), programs=range(4), grid=(4,))
@triton.jit
def sum_in_8_bits_that_is_stored_in_32(x, out):
    offsets = tl.program_id(0) * 16 + tl.arange(0, 16)
    twice = tl.load(x + offsets) + tl.load(x + offsets)  # bug
    tl.store(out + offsets, twice)


@bug("integer-overflow", lambda: np.full(64, 100, "i1"), floats(64), 0.5, programs=range(4), grid=(4,))
@triton.jit
def product_in_8_bits_that_is_scaled(x, out, scale):
    offsets = tl.program_id(0) * 16 + tl.arange(0, 16)
    square = tl.load(x + offsets) * tl.load(x + offsets)  # bug
    tl.store(out + offsets, square.to(tl.float32) * scale)


@bug("integer-overflow", lambda: np.full(64, 100, "i1"), lambda: np.zeros(64, "i1"), tensor="out", programs=range(4))
@triton.jit
def sum_in_8_bits_that_is_stored_so(x, out):
    offsets = tl.program_id(0) * 16 + tl.arange(0, 16)
    twice = tl.load(x + offsets) + tl.load(x + offsets)  # bug
    tl.store(out + offsets, twice)


@bug("integer-overflow", floats(100), floats(32), 5000, programs={0}, grid=(1,))
@triton.jit
def slot_of_a_ring_that_wraps_before_the_remainder(ring, out, step):
    i = tl.arange(0, 32)
    slot = (step * 1_000_003 + i) % 100  # bug
    tl.store(out + i, tl.load(ring + slot))


@bug("integer-overflow", integers(64), lambda: np.zeros(64, "i8"), programs=range(4), grid=(4,))
@triton.jit
def sizes_in_32_bits_that_are_stored_in_64(x, out):
    offsets = tl.program_id(0) * 16 + tl.arange(0, 16)
    sizes = (tl.load(x + offsets) + 40_000) * 65536  # bug
    tl.store(out + offsets, sizes)


@bug("integer-overflow", integers(64, 40_000), lambda: np.zeros(4, "i8"), grid=(4,), programs=range(4))
@triton.jit
def product_in_32_bits_beside_a_number_of_64(x, out):
    product = tl.load(x + tl.program_id(0) * 16) * 65536  # bug
    tl.store(out + tl.program_id(0), tl.program_id(0).to(tl.int64) + product)


@bug("masked-lanes", lambda: -1 - np.arange(4000, dtype="f4"), floats(4), 1000, tensor="x", B=1024)
@triton.jit
def maximum_of_negative_numbers(x, out, n, B: tl.constexpr):
    columns = tl.arange(0, B)
    row = tl.load(x + tl.program_id(0) * n + columns, mask=columns < n, other=0.0)  # bug
    tl.store(out + tl.program_id(0), tl.max(row, 0))


@bug("masked-lanes", floats(4, 100), floats(4), 100, tensor="x", B=128)
@triton.jit
def variance_with_lanes_that_were_not_loaded(x, out, n, B: tl.constexpr):
    columns = tl.arange(0, B)
    row = tl.load(x + tl.program_id(0) * n + columns, mask=columns < n, other=0.0)  # bug
    apart = row - tl.sum(row, 0) / n
    tl.store(out + tl.program_id(0), tl.sum(apart * apart, 0) / n)


@bug("unwritten", floats(1000), empty(1000), 1000, tensor="out", grid=(7,), B=128)
@triton.jit
def grid_without_the_last_tile(x, out, n, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    values = tl.load(x + offsets, mask=offsets < n)
    tl.store(out + offsets, values * 2, mask=offsets < n)  # bug


@bug("unwritten", floats(6, 64), empty(6, 64), 64, tensor="out", grid=(6,), B=64)
@triton.jit
def half_of_each_row(x, out, stride, B: tl.constexpr):
    place = tl.program_id(0) * stride + tl.arange(0, B // 2)
    tl.store(out + place, tl.load(x + place))  # bug


@bug("unwritten", empty(96, 80), 96, 80, 80, 1, tensor="out", grid=(3, 3), R=32, C=32)
@triton.jit
def mask_one_too_short(out, rows, columns, row_stride, column_stride, R: tl.constexpr, C: tl.constexpr):
    row = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    column = tl.program_id(1) * C + tl.arange(0, C)[None, :]
    mask = (tl.arange(0, R)[:, None] < R - 1) & (column < columns)
    tl.store(out + row * row_stride + column * column_stride, 1.0, mask=mask)  # bug


@bug("division-by-zero", integers(4), integers(4), programs=range(4))
@triton.jit
def divides_by_a_loaded_zero(x, out):
    tl.store(out + tl.program_id(0), 10 // tl.load(x + tl.program_id(0)))  # bug


@bug("division-by-zero", integers(4), 4, programs={0})
@triton.jit
def remainder_of_its_own_number(out, n):
    tl.store(out + tl.program_id(0), n % tl.program_id(0))  # bug


@bug("division-by-zero", lambda: np.array([3, 0, 5, 1], "i4"), integers(4), programs={1})
@triton.jit
def mean_of_an_empty_group(counts, out):
    count = tl.load(counts + tl.program_id(0))
    tl.store(out + tl.program_id(0), tl.cdiv(100, count))  # bug


@bug("nan-origin", floats(64), programs={0}, grid=(1,))
@triton.jit
def infinity_minus_itself(x):
    i = tl.arange(0, 64)
    values = tl.exp(tl.load(x + i) * 100)  # bug
    tl.store(x + i, values - values)


@bug("nan-origin", floats(64), programs={0}, grid=(1,))
@triton.jit
def square_root_of_a_negative_number(x):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.sqrt(tl.load(x + i) - 2))  # bug


@bug("nan-origin", floats(64), programs={2})
@triton.jit
def logarithm_of_zero(x):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    value = tl.load(x + i) * (tl.program_id(0) != 2)
    tl.store(x + i, tl.log(value))  # bug


@bug("nan-origin", lambda: np.full(64, 60000, "f2"), programs={0}, grid=(1,))
@triton.jit
def sum_beyond_half_precision(x):
    i = tl.arange(0, 64)
    value = tl.load(x + i)
    tl.store(x + i, value + value)  # bug


@bug("nan-origin", lambda: np.zeros(4, "f4"), programs=range(4))
@triton.jit
def zero_by_zero(x):
    value = tl.load(x + tl.program_id(0))
    tl.store(x + tl.program_id(0), value / value)  # bug


@triton.jit
def adds_without_mask_at_the_store(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n)
    tl.store(out + i, total)


@bug("nan-origin", lambda: np.zeros((4, 8), "f4"), programs={0}, grid=(4,))
@triton.jit
def softmax_of_a_row_that_is_masked_whole(x):
    row, i = tl.program_id(0), tl.arange(0, 8)
    scores = tl.where(i < row, tl.load(x + row * 8 + i), -float("inf"))
    weights = tl.exp(scores - tl.max(scores, 0))  # bug
    tl.store(x + row * 8 + i, weights / tl.sum(weights, 0))


@bug("nan-result", lambda: np.full((4, 8), 100, "f4"), programs=range(4), grid=(4,))
@triton.jit
def softmax_without_its_maximum(x):
    row, i = tl.program_id(0), tl.arange(0, 8)
    weights = tl.exp(tl.load(x + row * 8 + i))  # bug
    tl.store(x + row * 8 + i, weights / tl.sum(weights, 0))


@bug("nan-result", lambda: np.full((2, 64), 300, "f2"), empty(2), programs=range(2), grid=(2,))
@triton.jit
def squares_in_half_precision(x, out):
    row, i = tl.program_id(0), tl.arange(0, 64)
    value = tl.load(x + row * 64 + i)
    total = tl.sum(value * value, 0)  # bug
    tl.store(out + row, tl.sqrt(total.to(tl.float32)))


@bug("nan-result", floats(4, 8), lambda: np.array([3, 0, 8, 1], "i4"), empty(4), programs={1}, grid=(4,))
@triton.jit
def mean_of_no_numbers(x, count, out):
    row, i = tl.program_id(0), tl.arange(0, 8)
    n = tl.load(count + row)
    total = tl.sum(tl.load(x + row * 8 + i, mask=i < n, other=0.0), 0)
    tl.store(out + row, total / n)  # bug


@bug("nan-result", floats(4, 8), lambda: np.array([3, 0, 8, 1], "f4"), empty(4), programs={1}, grid=(4,))
@triton.jit
def scale_by_a_divisor_that_is_zero(x, divisor, out):
    row, i = tl.program_id(0), tl.arange(0, 8)
    scale = 1 / tl.load(divisor + row)  # bug
    tl.store(out + row, tl.sum(tl.load(x + row * 8 + i), 0) * scale)
