"""Correct kernels that convert between types of few bits."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import ml_dtypes
import numpy as np
import triton
import triton.language as tl

from tests.kernels.correct.table import correct, normal


@triton.jit
def rows_kernel(x, out, scales, n, B: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, B)
    mask = columns < n
    value = tl.load(x + row * n + columns, mask=mask, other=0.0)
    scale = tl.maximum(tl.max(tl.abs(value), 0), 1e-10) / 127
    rounded = value / scale
    rounded = tl.where(rounded >= 0, rounded + 0.5, rounded - 0.5).to(tl.int8)
    tl.store(out + row * n + columns, rounded, mask=mask)
    tl.store(scales + row, scale)


@correct
def rows_to_int8():
    x = normal(6, 60)
    out, scales = np.empty((6, 60), "i1"), np.empty(6, "f4")
    rows_kernel[(6,)](x, out, scales, 60, B=64)
    expected = np.abs(x).max(1) / 127
    return [(scales, expected), (np.abs(out * scales[:, None] - x) <= expected[:, None] * 0.51, np.ones_like(x))]


@triton.jit
def groups_kernel(x, out, scales, n, GROUP: tl.constexpr, LIMIT: tl.constexpr):
    group = tl.program_id(0).to(tl.int64)
    place = group * GROUP + tl.arange(0, GROUP)
    value = tl.load(x + place, mask=place < n, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(value)), 1e-10) / LIMIT
    narrow = tl.clamp(value / scale, -LIMIT, LIMIT).to(out.dtype.element_ty)
    tl.store(out + place, narrow, mask=place < n)
    tl.store(scales + group, scale)


@correct
def groups_to_fp8():
    x = normal(5, 50)
    out, scales = np.empty((5, 50), ml_dtypes.float8_e4m3fn), np.empty(8, "f4")
    groups_kernel[(8,)](x, out, scales, 250, GROUP=32, LIMIT=448.0)
    back = out.astype("f4").ravel() * np.repeat(scales, 32)[:250]
    return [(np.abs(back - x.ravel()) < 0.07 * np.abs(x.ravel()) + 0.01, np.ones(250))]


@triton.jit
def nibbles_kernel(packed, scales, zeros, out, n, GROUP: tl.constexpr, B: tl.constexpr):
    word = tl.program_id(0) * B + tl.arange(0, B)
    mask = word < n
    bits = tl.load(packed + word, mask=mask, other=0)
    place = word[:, None] * 8 + tl.arange(0, 8)[None, :]
    numbers = (bits[:, None] >> (tl.arange(0, 8) * 4)[None, :]) & 0xF
    scale = tl.load(scales + place // GROUP, mask=mask[:, None], other=0.0)
    zero = tl.load(zeros + place // GROUP, mask=mask[:, None], other=0)
    tl.store(out + place, (numbers - zero) * scale, mask=mask[:, None])


@correct
def numbers_of_four_bits():
    random = np.random.default_rng(0)
    numbers = random.integers(0, 16, (30, 8))
    packed = (numbers << (np.arange(8) * 4)).sum(1).astype("u4").view("i4")
    scales, zeros = np.abs(normal(15)), random.integers(0, 16, 15).astype("i4")
    out = np.empty(240, "f4")
    nibbles_kernel[(2,)](packed, scales, zeros, out, 30, GROUP=16, B=16)
    return [(out, (numbers.ravel() - np.repeat(zeros, 16)) * np.repeat(scales, 16))]


@triton.jit
def half_kernel(x, out, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + place, mask=place < n, other=0.0)
    tl.store(out + place, (value * 2 + 1).to(out.dtype.element_ty), mask=place < n)


@correct
def mixed_precision():
    x = normal(100, dtype=ml_dtypes.bfloat16)
    out = np.empty(100, "f2")
    half_kernel[(2,)](x, out, 100, B=64)
    rounded = (x.astype("f4") * 2).astype(ml_dtypes.bfloat16).astype("f4") + 1
    return [(out, rounded.astype(ml_dtypes.bfloat16).astype("f2"))]


@triton.jit
def stochastic_kernel(x, out, seed, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    bits = tl.load(x + place, mask=place < n, other=0.0).to(tl.int32, bitcast=True)
    noise = tl.randint(seed, place).to(tl.int32) & 0xFFFF
    tl.store(out + place, ((bits + noise) & -65536).to(tl.float32, bitcast=True), mask=place < n)


@correct
def stochastic_rounding():
    x = np.full(4096, 1 + 2.0**-9, "f4")
    out = np.empty_like(x)
    stochastic_kernel[(4,)](x, out, 7, 4096, B=1024)
    return [(np.unique(out), [1, 1 + 2.0**-7]), (abs(out.mean() - x.mean()) < 2e-4, 1)]
