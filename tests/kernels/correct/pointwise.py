"""Correct kernels that treat each element, or pair of elements, alone."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tests.kernels.correct.table import correct, normal


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@triton.jit
def swiglu_kernel(gate, up, out, stride, n, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, B)
    mask = columns < n
    a = tl.load(gate + row * stride + columns, mask=mask, other=0).to(tl.float32)
    b = tl.load(up + row * stride + columns, mask=mask, other=0)
    tl.store(out + row * stride + columns, (a * tl.sigmoid(a)).to(b.dtype) * b, mask=mask)


@correct
def swiglu():
    a, b = normal(7, 100), normal(7, 100, seed=1)
    out = np.zeros_like(a)
    swiglu_kernel[(7,)](a, b, out, 100, 100, B=128)
    return [(out, a * sigmoid(a) * b)]


@triton.jit
def swiglu_backward_kernel(grad, gate, up, stride, n, B: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, B)
    mask = columns < n
    place = row * stride + columns
    dc = tl.load(grad + place, mask=mask, other=0)
    a = tl.load(gate + place, mask=mask, other=0)
    b = tl.load(up + place, mask=mask, other=0)
    s = tl.sigmoid(a)
    tl.store(gate + place, dc * (a * s * (1 - s) + s) * b, mask=mask)
    tl.store(up + place, dc * a * s, mask=mask)


@correct
def swiglu_backward_in_place():
    grad, a, b = normal(5, 60), normal(5, 60, seed=1), normal(5, 60, seed=2)
    s = sigmoid(a)
    expected_a, expected_b = grad * (a * s * (1 - s) + s) * b, grad * a * s
    swiglu_backward_kernel[(5,)](grad, a, b, 60, 60, B=64)
    return [(a, expected_a), (b, expected_b)]


@triton.jit
def geglu_kernel(gate, up, out, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    mask = place < n
    a = tl.load(gate + place, mask=mask, other=0)
    inner = 0.7978845608028654 * (a + 0.044715 * a * a * a)
    half = 0.5 * a * (1 + 2 * tl.sigmoid(2 * inner) - 1)
    tl.store(out + place, half * tl.load(up + place, mask=mask, other=0), mask=mask)


@correct
def geglu():
    a, b = normal(300), normal(300, seed=1)
    out = np.zeros_like(a)
    geglu_kernel[(5,)](a, b, out, 300, B=64)
    return [(out, 0.5 * a * (1 + np.tanh(0.7978845608 * (a + 0.044715 * a**3))) * b)]


@triton.jit
def squared_relu_kernel(x, grad, dx, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    mask = place < n
    value = tl.load(x + place, mask=mask, other=0)
    slope = tl.where(value > 0, 2 * value, 0.0)
    tl.store(dx + place, slope * tl.load(grad + place, mask=mask, other=0), mask=mask)


@correct
def squared_relu_backward():
    x, grad = normal(200), normal(200, seed=1)
    dx = np.zeros_like(x)
    squared_relu_kernel[lambda meta: (triton.cdiv(200, meta["B"]),)](x, grad, dx, 200, B=64)
    return [(dx, grad * 2 * np.maximum(x, 0))]


@triton.jit
def dropout_kernel(x, out, n, keep, seed, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    mask = place < n
    kept = tl.rand(seed, place) < keep
    value = tl.load(x + place, mask=mask)
    tl.store(out + place, tl.where(kept, value / keep, 0.0), mask=mask)


@correct
def seeded_dropout_is_the_same_twice():
    x = normal(1000) + 10
    first, second = np.zeros_like(x), np.zeros_like(x)
    dropout_kernel[(8,)](x, first, 1000, 0.75, 123, B=128)
    dropout_kernel[(2,)](x, second, 1000, 0.75, 123, B=512)
    kept = first != 0
    assert 0.7 < kept.mean() < 0.8
    return [(first, second), (first[kept], x[kept] / np.float32(0.75))]


@triton.jit
def rope_kernel(q, cos, sin, seq, heads, HD: tl.constexpr, HEADS: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    half = tl.arange(0, HD // 2)
    head = tl.arange(0, HEADS)[:, None]
    c = tl.load(cos + token % seq * (HD // 2) + half)
    s = tl.load(sin + token % seq * (HD // 2) + half)
    left = q + token * heads * HD + head * HD + half[None, :]
    mask = head < heads
    a = tl.load(left, mask=mask, other=0)
    b = tl.load(left + HD // 2, mask=mask, other=0)
    tl.store(left, a * c - b * s, mask=mask)
    tl.store(left + HD // 2, b * c + a * s, mask=mask)


@correct
def rotary_embedding_in_place():
    q, angle = normal(2, 6, 3, 16), normal(6, 8)
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    a, b = q[..., :8].copy(), q[..., 8:].copy()
    rope_kernel[(12,)](q, np.cos(angle), np.sin(angle), 6, 3, HD=16, HEADS=4)
    return [(q, np.concatenate([a * c - b * s, b * c + a * s], -1))]


@triton.jit
def complex_product_kernel(x, y, out, n, B: tl.constexpr):
    place = (tl.program_id(0) * B + tl.arange(0, B))[:, None] * 2 + tl.arange(0, 2)[None, :]
    mask = place < 2 * n
    real, imaginary = tl.split(tl.load(x + place, mask=mask, other=0))
    other_real, other_imaginary = tl.split(tl.load(y + place, mask=mask, other=0))
    product = tl.join(real * other_real - imaginary * other_imaginary, real * other_imaginary + imaginary * other_real)
    tl.store(out + place, product, mask=mask)


@correct
def product_of_complex_numbers():
    x, y = normal(50, 2), normal(50, 2, seed=1)
    out = np.zeros_like(x)
    complex_product_kernel[(2,)](x, y, out, 50, B=32)
    product = (x[:, 0] + 1j * x[:, 1]) * (y[:, 0] + 1j * y[:, 1])
    return [(out, np.stack([product.real, product.imag], 1))]


@triton.jit
def broadcast_bias_kernel(x, bias, rows, columns, BR: tl.constexpr, BC: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    mask = (r < rows)[:, None] & (c < columns)[None, :]
    place = x + r[:, None] * columns + c[None, :]
    b = tl.load(bias + c, mask=c < columns, other=0.0)
    tl.store(place, tl.load(place, mask=mask, other=0.0) + b[None, :], mask=mask)


@correct
def bias_added_in_place():
    x, bias = normal(33, 50), normal(50)
    expected = x + bias
    broadcast_bias_kernel[(3, 4)](x, bias, 33, 50, BR=16, BC=16)
    return [(x, expected)]


@triton.jit
def adam_kernel(p, g, m, v, rate, step, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    mask = place < n
    grad = tl.load(g + place, mask=mask)
    first = 0.9 * tl.load(m + place, mask=mask) + 0.1 * grad
    second = 0.999 * tl.load(v + place, mask=mask) + 0.001 * grad * grad
    tl.store(m + place, first, mask=mask)
    tl.store(v + place, second, mask=mask)
    hat = first / (1 - tl.exp(step * tl.log(0.9)))
    scale = tl.sqrt(second / (1 - tl.exp(step * tl.log(0.999)))) + 1e-8
    tl.store(p + place, tl.load(p + place, mask=mask) - rate * hat / scale, mask=mask)


@correct
def adam_step_without_other_whose_masked_lanes_go_nowhere():
    p, g = normal(100), normal(100, seed=1)
    m, v = np.zeros_like(p), np.zeros_like(p)
    expected = p - 0.01 * g / (np.abs(g) + 1e-8)
    adam_kernel[(2,)](p, g, m, v, 0.01, 1.0, 100, B=64)
    return [(p, expected), (m, 0.1 * g), (v, 0.001 * g * g)]


@triton.jit
def clip_kernel(x, out, low, high, n, B: tl.constexpr):
    for start in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        place = start + tl.arange(0, B)
        value = tl.load(x + place, mask=place < n, other=0.0)
        tl.store(out + place, tl.clamp(value, low, high), mask=place < n)


@correct
def clipping_with_a_loop_over_the_grid():
    x = normal(1000)
    out = np.zeros_like(x)
    clip_kernel[(3,)](x, out, -0.5, 0.5, 1000, B=64)
    return [(out, np.clip(x, -0.5, 0.5))]


@triton.jit
def shifted_kernel(x, out, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    before = tl.load(x + place - 1, mask=(place > 0) & (place < n), other=0.0)
    tl.store(out + place, tl.load(x + place, mask=place < n, other=0.0) - before, mask=place < n)


@correct
def differences_of_neighbours_in_flat_memory():
    x = normal(8, 64)
    out = np.zeros_like(x)
    shifted_kernel[(8,)](x, out, 512, B=64)
    return [(out.ravel(), np.diff(x.ravel(), prepend=np.float32(0)))]


@triton.jit
def flat_copy_kernel(x, out, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + place, tl.load(x + place, mask=place < n), mask=place < n)


@correct
def matrix_taken_as_flat_memory():
    pairs = []
    for shape, block in (((32, 50), 64), ((32, 64), 128), ((4, 256), 1024), ((2, 16, 64), 256), ((8, 32), 32)):
        x = normal(*shape)
        out = np.zeros_like(x)
        flat_copy_kernel[(triton.cdiv(x.size, block),)](x, out, x.size, B=block)
        pairs.append((out, x))
    return pairs


@triton.jit
def mean_kernel(totals, counts, index, x, out, n, B: tl.constexpr):
    place = tl.arange(0, B)
    mask = place < n
    count = tl.load(counts + place, mask=mask, other=0)
    total = tl.load(totals + place, mask=mask)
    mean = tl.where(count > 0, total // count, 0)
    chosen = tl.load(x + tl.load(index + place, mask=mask), mask=mask)
    tl.store(out + place, mean + chosen, mask=mask)


@correct
def lanes_without_meaning_that_are_left_out():
    totals, counts = np.arange(20, dtype="i4") * 7, np.arange(20, dtype="i4") % 4
    index, x = np.arange(20, dtype="i8")[::-1].copy(), np.arange(100, 120, dtype="i4")
    out = np.empty(20, "i4")
    mean_kernel[(1,)](totals, counts, index, x, out, 20, B=32)
    return [(out, np.where(counts > 0, totals // np.maximum(counts, 1), 0) + x[index])]


@triton.jit
def triangle_kernel(x, out, B: tl.constexpr):
    rows, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    tl.store(x + rows * B + columns, 1.0, mask=rows >= columns)
    tl.debug_barrier()
    value = tl.load(x + rows * B + columns)
    tl.store(out + tl.arange(0, B), tl.sum(tl.where(rows >= columns, value, 0.0), 1))


@correct
def half_of_a_matrix_that_nobody_writes():
    out = np.empty(16, "f4")
    triangle_kernel[(1,)](np.empty((16, 16), "f4"), out, B=16)
    return [(out, np.arange(1, 17))]


@triton.jit
def hash_kernel(keys, counts, n, B: tl.constexpr):
    key = tl.load(keys + tl.program_id(0) * B + tl.arange(0, B))
    tl.atomic_add(counts + ((key * 1103515245 + 12345) & 0x7FFFFFFF) % n, 1)
    key ^= key >> 16
    key *= 0x45D9F3B
    tl.atomic_add(counts + n + (key ^ (key >> 16)) % 4 + 4, 1)


@triton.jit
def random_kernel(out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, ((i + 1) * 1103515245 + 12345) % 1000)


@correct
def random_numbers_that_are_remainders():
    out = np.zeros(64, "i4")
    random_kernel[(2,)](out, B=32)
    wrapped = np.arange(1, 65, dtype="i4") * np.int32(1103515245) + np.int32(12345)
    return [(out, np.fmod(wrapped, 1000))]


@correct
def hash_functions_that_overflow_on_purpose():
    counts = np.zeros(32, "i4")
    hash_kernel[(4,)](np.random.default_rng(0).integers(0, 2**31, 256).astype("i4"), counts, 16, B=64)
    return [(counts[:16].sum(), 256), (counts.sum(), 512)]


class CachedAutotuner(triton.runtime.Autotuner):
    """An autotuner of a library's own."""


@triton.autotune(configs=[triton.Config({"B": 64}, num_warps=2), triton.Config({"B": 128})], key=["n"])
@triton.jit
def doubled_kernel(x, out, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + place, tl.load(x + place, mask=place < n) * 2, mask=place < n)


doubled_kernel.__class__ = CachedAutotuner


@correct
def autotuner_of_a_derived_class():
    x = normal(200)
    out = np.empty_like(x)
    doubled_kernel[lambda meta: (triton.cdiv(200, meta["B"]),)](x, out, 200)
    return [(out, x * 2)]


HALF = tl.constexpr(0.5)
Shape = namedtuple("Shape", ["rows", "columns"])


@triton.jit
def _bit(value, place):
    return (value >> place) & 1


@triton.jit
def names_from_outside_kernel(x, out, shape, N: tl.constexpr):
    i = tl.arange(0, N)
    inner = Shape(shape.rows, shape.columns - 1)
    value = tl.load(x + i, mask=i < inner.rows * inner.columns, other=0)
    bits = _bit(value, tl.minimum(i, 31)) + tl.where(i < 32, value >> i, 0)
    tl.store(out + i, bits * HALF * math.log2(N) + np.pi)


@correct
def names_from_outside_that_triton_takes():
    x, out = np.arange(1, 65, dtype="i4"), np.zeros(64, "f4")
    names_from_outside_kernel[(1,)](x, out, Shape(8, 8), N=64)
    kept = np.where(np.arange(64) < 56, x, 0)
    place = np.minimum(np.arange(64), 31)
    return [(out, (((kept >> place) & 1) + np.where(np.arange(64) < 32, kept >> place, 0)) * 0.5 * 6 + np.pi)]
