"""Planted waste, and sums whose last digits differ from run to run; none of these checkers is on by default."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import triton
import triton.language as tl

from tests.kernels.planted.table import bug, floats


@bug("uncoalesced", floats(64, 64), floats(64), tensor="x", programs={0}, grid=(1,))
@triton.jit
def reads_down_a_column(x, out):
    rows = tl.arange(0, 64)
    values = tl.load(x + rows * 64)  # bug
    tl.store(out + rows, values)


@bug("uncoalesced", floats(64, 64), floats(64, 64), tensor="out", programs=range(4))
@triton.jit
def writes_a_transposed_strip(x, out):
    rows, column = tl.arange(0, 64), tl.program_id(0)
    values = tl.load(x + column * 64 + rows)
    tl.store(out + rows * 64 + column, values)  # bug


@bug("uncoalesced", lambda: np.arange(64, dtype="i4") * 16, floats(1024), tensor="x", programs={0}, grid=(1,))
@triton.jit
def gathers_far_apart(index, x):
    places = tl.load(index + tl.arange(0, 64))
    tl.load(x + places)  # bug


@bug("atomic-order", floats(1), tensor="total")
@triton.jit
def sum_by_float_atomics(total):
    tl.atomic_add(total, 0.1)  # bug


@bug("atomic-order", floats(16), floats(8, 16), tensor="dw", grid=(8,))
@triton.jit
def gradient_by_float_atomics(dw, x):
    columns = tl.arange(0, 16)
    tl.atomic_add(dw + columns, tl.load(x + tl.program_id(0) * 16 + columns))  # bug


def _bytes():
    return np.zeros((64, 64), ml_dtypes.float8_e5m2)


@bug("bank-conflict", _bytes, _bytes, floats(64, 64), grid=(1,))
@triton.jit
def product_of_rows_of_bytes(a, b, c):
    i, k = tl.arange(0, 64), tl.arange(0, 32)
    total = tl.zeros((64, 64), tl.float32)
    for start in range(0, 64, 32):
        left = tl.load(a + i[:, None] * 64 + (start + k)[None, :])
        right = tl.load(b + (start + k)[:, None] * 64 + i[None, :])  # bug
        total = tl.dot(left, right, total)
    tl.store(c + i[:, None] * 64 + i[None, :], total)


@bug("bank-conflict", floats(64, 64), floats(64, 64), floats(64, 64), grid=(1,))
@triton.jit
def product_whose_operand_is_turned_around(a, b, c):
    i = tl.arange(0, 64)
    left = tl.load(a + i[:, None] * 64 + i[None, :])
    right = tl.load(b + i[:, None] * 64 + i[None, :])  # bug
    total = tl.dot(left, right, input_precision="tf32")
    tl.store(c + i[:, None] * 64 + i[None, :], total)


NUMBER = 7


@triton.jit
def reads_a_number_of_the_module(x):
    tl.store(x + tl.arange(0, 16), NUMBER)
