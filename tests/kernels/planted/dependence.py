"""Planted results that depend on what must not matter: tuning, the order of programs, sizes of blocks, lost digits."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.kernels.planted.table import bug, bug_of_the_kernel, floats, integers


def tuned(**options):
    return triton.autotune([triton.Config({"B": 32}), triton.Config({"B": 64})], key=["n"], **options)


@bug_of_the_kernel("tuned-twice", lambda k: k[(4,)](np.ones(100, "f4"), np.zeros(1, "f4"), 100), tensor="total")
@tuned()
@triton.jit
def adds_while_it_is_tuned(x, total, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(total, tl.sum(tl.load(x + place, mask=place < n, other=0.0), 0))  # bug


@bug_of_the_kernel("tuned-twice", lambda k: k[(4,)](np.ones(100, "f4"), 100), tensor="x")
@tuned()
@triton.jit
def doubles_in_place_while_it_is_tuned(x, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + place, tl.load(x + place, mask=place < n) * 2, mask=place < n)  # bug


@bug_of_the_kernel("tuned-twice", lambda k: k[(4,)](np.zeros(1, "i4"), np.zeros(4, "i4"), 100), tensor="counter")
@tuned()
@triton.jit
def draws_tickets_while_it_is_tuned(counter, out, n, B: tl.constexpr):
    own = tl.atomic_add(counter, 1)  # bug
    tl.store(out + tl.program_id(0), own)


def _numbers():
    return np.arange(100, dtype="i4")


@bug("order-dependence", _numbers, integers(100), integers(1), 100, tensor="out", grid=(7,), B=16)
@triton.jit
def compacts_by_a_counter(x, out, counter, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + place, mask=place < n, other=1)
    keep = (value % 2) == 0
    first = tl.atomic_add(counter, tl.sum(keep.to(tl.int32), 0))  # bug
    tl.store(out + first + tl.cumsum(keep.to(tl.int32), 0) - 1, value, mask=keep)


@bug("order-dependence", integers(1), integers(5), tensor="out", grid=(5,))
@triton.jit
def takes_its_number_from_a_ticket(counter, out):
    own = tl.atomic_add(counter, 1)  # bug
    tl.store(out + own, tl.program_id(0))


@bug("order-dependence", integers(1), tensor="last", grid=(5,))
@triton.jit
def leaves_what_the_last_program_exchanged(last):
    tl.atomic_xchg(last, tl.program_id(0))  # bug


@bug("launch-dependence", floats(98), floats(98), tensor="out", grid=lambda meta: (98 // meta["B"],), B=32)
@triton.jit
def leaves_out_a_tail(x, out, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + place, tl.load(x + place) * 2)  # bug


@bug("launch-dependence", floats(128), floats(128), 128, tensor="out", grid=(4,), B=32)
@triton.jit
def counts_on_four_programs(x, out, n, B: tl.constexpr):
    for start in range(tl.program_id(0) * B, n, 4 * B):
        place = start + tl.arange(0, B)
        tl.store(out + place, tl.load(x + place) / tl.num_programs(0))  # bug


def _sizes():
    return np.linspace(1000, 1001, 256).astype("f4")


@bug("precision", _sizes, floats(1), 256, grid=(1,), B=256)
@triton.jit
def variance_by_squares(x, out, n, B: tl.constexpr):
    values = tl.load(x + tl.arange(0, B))
    mean = tl.sum(values, 0) / n
    squares = tl.sum(values * values, 0) / n
    variance = squares - mean * mean  # bug
    tl.store(out, variance)


@bug("precision", floats(65536), floats(16), 65536, grid=(1,), B=16)
@triton.jit
def long_sum_in_float16(x, out, n, B: tl.constexpr):
    total = tl.zeros((B,), tl.float16)
    for start in range(0, n, B):
        values = tl.load(x + start + tl.arange(0, B))
        total += values.to(tl.float16)  # bug
    tl.store(out + tl.arange(0, B), total.to(tl.float32))


@bug("precision", lambda: np.full(16, 300, "f4"), floats(16), grid=(1,))
@triton.jit
def square_that_leaves_float16(x, out):
    values = tl.load(x + tl.arange(0, 16)).to(tl.float16)
    squares = values * values  # bug
    tl.store(out + tl.arange(0, 16), tl.sqrt(squares.to(tl.float32)))
