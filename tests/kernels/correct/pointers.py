"""Correct kernels that make pointers from integers, to elements of another size, or choose them among tensors."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.kernels.correct.table import correct, normal


@triton.jit
def bytes_kernel(x, out, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    source = x.to(tl.pointer_type(tl.uint8))
    target = out.to(tl.pointer_type(tl.uint8))
    tl.store(target + place, tl.load(source + place, mask=place < n), mask=place < n)


@correct
def floats_copied_byte_by_byte():
    x = normal(50)
    out = np.empty_like(x)
    bytes_kernel[(7,)](x, out, 200, B=32)
    return [(out, x)]


@triton.jit
def tensors_kernel(addresses, lengths, out, B: tl.constexpr):
    tensor = tl.program_id(0)
    start = tl.load(addresses + tensor).to(tl.pointer_type(tl.float32))
    place = tl.arange(0, B)
    mask = place < tl.load(lengths + tensor)
    values = tl.load(start + place, mask=mask, other=0.0)
    tl.store(start + place, values * 2, mask=mask)
    tl.store(out + tensor, tl.sum(values, 0))


@correct
def tensors_found_by_their_addresses():
    tensors = [normal(length, seed=length) for length in (5, 16, 11)]
    sums = [tensor.sum() for tensor in tensors]
    doubled = [tensor * 2 for tensor in tensors]
    addresses = np.array([tensor.ctypes.data for tensor in tensors], "i8")
    out = np.empty(3, "f4")
    tensors_kernel[(3,)](addresses, np.array([5, 16, 11], "i4"), out, B=16)
    return [(out, sums), *zip(tensors, doubled, strict=True)]


@triton.jit
def chosen_kernel(x, y, out, B: tl.constexpr):
    place = tl.arange(0, B)
    source = x if tl.program_id(0) % 2 == 0 else y
    tl.store(out + tl.program_id(0) * B + place, tl.load(source + place))


@correct
def tensor_chosen_by_each_program():
    x, y = normal(16), normal(16, seed=1)
    out = np.empty((4, 16), "f4")
    chosen_kernel[(4,)](x, y, out, B=16)
    return [(out, [x, y, x, y])]


@triton.jit
def hints_kernel(a, out, stride, B: tl.constexpr):
    rows, columns = tl.arange(0, B), tl.arange(0, B)
    pointers = a + rows[:, None] * stride + columns[None, :]
    tl.multiple_of(pointers, [16, 16])
    tl.max_contiguous(pointers, [1, B])
    stride = tl.multiple_of(stride, 16)
    start = tl.multiple_of(tl.program_id(0) * B, B)
    tl.assume(stride > 0)
    tl.store(out + start + columns, tl.sum(tl.load(pointers), 0))


@correct
def promises_that_hold():
    # Promises are about addresses: this tensor's must be a multiple of 16 bytes.
    whole = np.zeros(16 * 32 + 4, "f4")
    start = -whole.ctypes.data // 4 % 4
    a = whole[start : start + 16 * 32].reshape(16, 32)
    a[:] = normal(16, 32)
    out = np.empty(32, "f4")
    hints_kernel[(2,)](a, out, 32, B=16)
    return [(out[:16], a[:, :16].sum(0))]


@triton.jit
def wrapped_kernel(a, b, c, M, N, K, B: tl.constexpr):
    rows, columns = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    own_rows = tl.max_contiguous(tl.multiple_of(rows % M, B), B)
    own_columns = tl.where(columns < N, columns, 0)
    own_columns = tl.max_contiguous(tl.multiple_of(own_columns, B), B)
    total = tl.zeros((B, B), tl.float32)
    for start in range(0, K, B):
        ks = start + tl.arange(0, B)
        left = tl.load(a + own_rows[:, None] * K + ks[None, :], mask=ks[None, :] < K, other=0.0)
        right = tl.load(b + ks[:, None] * N + own_columns[None, :], mask=ks[:, None] < K, other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total, mask=(rows < M)[:, None] & (columns < N)[None, :])


@correct
def promises_broken_in_lanes_that_are_left_out():
    a, b = normal(40, 24), normal(24, 36)
    c = np.empty((40, 36), "f4")
    wrapped_kernel[(3, 3)](a, b, c, 40, 36, 24, B=16)
    return [(c, a @ b)]
