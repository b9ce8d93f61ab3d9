"""Answers to the twelve exercises of the public Triton-Puzzles, with the signatures and sizes they are set with."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code; the demos name a block `range`

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.kernels.correct.table import correct, normal, softmax


@triton.jit
def demo_kernel(x_ptr, z_ptr):
    range = tl.arange(0, 8)
    x = tl.load(x_ptr + range, range < 5, 0)
    print("x", x)
    z = tl.store(z_ptr + range, 10, range < 5)  # noqa: F841 - as the demo has it


@correct
def puzzle_demos():
    z = np.ones((4, 3), "f4")
    demo_kernel[(1, 1, 1)](np.ones((4, 3), "f4"), z)
    return [(z.ravel(), [10] * 5 + [1] * 7)]


@triton.jit
def add_kernel(x_ptr, z_ptr, N0, B0: tl.constexpr):
    i = tl.program_id(0) * B0 + tl.arange(0, B0)
    x = tl.load(x_ptr + i, i < N0)
    tl.store(z_ptr + i, x + 10.0, i < N0)
    return


@correct
def puzzle_1_and_2_constant_added():
    pairs = []
    for n in (32, 200):
        x = normal(n)
        z = np.empty_like(x)
        add_kernel[(triton.cdiv(n, 32),)](x, z, n, B0=32)
        pairs.append((z, x + 10))
    return pairs


@triton.jit
def outer_kernel(x_ptr, y_ptr, z_ptr, N0, N1, B0: tl.constexpr, B1: tl.constexpr, RELU: tl.constexpr):
    i = tl.program_id(0) * B0 + tl.arange(0, B0)
    j = tl.program_id(1) * B1 + tl.arange(0, B1)
    x = tl.load(x_ptr + i, i < N0)[None, :]
    y = tl.load(y_ptr + j, j < N1)[:, None]
    z = tl.maximum(x * y, 0.0) if RELU else x + y
    tl.store(z_ptr + j[:, None] * N0 + i[None, :], z, (j < N1)[:, None] & (i < N0)[None, :])


@correct
def puzzle_3_to_5_outer_products():
    pairs = []
    for n, m in ((32, 32), (100, 90)):
        x, y, z = normal(n), normal(m, seed=1), np.empty((m, n), "f4")
        grid = (triton.cdiv(n, 32), triton.cdiv(m, 32))
        outer_kernel[grid](x, y, z, n, m, B0=32, B1=32, RELU=False)
        pairs.append((z.copy(), x + y[:, None]))
        outer_kernel[grid](x, y, z, n, m, B0=32, B1=32, RELU=True)
        pairs.append((z, np.maximum(x * y[:, None], 0)))
    return pairs


@triton.jit
def outer_backward_kernel(x_ptr, y_ptr, dz_ptr, dx_ptr, N0, N1, B0: tl.constexpr, B1: tl.constexpr):
    i = tl.program_id(0) * B0 + tl.arange(0, B0)
    j = tl.program_id(1) * B1 + tl.arange(0, B1)
    mask = (j < N1)[:, None] & (i < N0)[None, :]
    place = j[:, None] * N0 + i[None, :]
    x, dz = tl.load(x_ptr + place, mask), tl.load(dz_ptr + place, mask)
    y = tl.load(y_ptr + j, j < N1)[:, None]
    tl.store(dx_ptr + place, tl.where(x * y > 0, dz * y, 0.0), mask)


@correct
def puzzle_6_outer_product_backward():
    x, y, dz = normal(90, 100), normal(90), normal(90, 100, seed=1)
    dx = np.empty_like(x)
    outer_backward_kernel[(4, 3)](x, y, dz, dx, 100, 90, B0=32, B1=32)
    return [(dx, np.where(x * y[:, None] > 0, dz * y[:, None], 0))]


@triton.jit
def sum_kernel(x_ptr, z_ptr, N0, N1, T, B0: tl.constexpr, B1: tl.constexpr):
    i = tl.program_id(0) * B0 + tl.arange(0, B0)
    z = tl.zeros([B0], dtype=tl.float32)
    for start in tl.range(0, T, B1):
        j = start + tl.arange(0, B1)
        mask = (i < N0)[:, None] & (j < T)[None, :]
        z += tl.sum(tl.load(x_ptr + i[:, None] * T + j[None, :], mask, 0), 1)
    tl.store(z_ptr + i, z, i < N0)


@correct
def puzzle_7_long_sum():
    x, z = normal(4, 200), np.empty(4, "f4")
    sum_kernel[(4,)](x, z, 4, 32, 200, B0=1, B1=32)
    return [(z, x.sum(1))]


@triton.jit
def softmax_kernel(x_ptr, z_ptr, N0, N1, T, B0: tl.constexpr, B1: tl.constexpr):
    i = tl.program_id(0) * B0 + tl.arange(0, B0)
    log2_e = 1.44269504
    greatest = tl.full([B0], -float("inf"), tl.float32)
    total = tl.zeros([B0], tl.float32)
    for start in tl.range(0, T, B1):
        j = start + tl.arange(0, B1)
        x = tl.load(x_ptr + i[:, None] * T + j[None, :], (i < N0)[:, None] & (j < T)[None, :], -float("inf"))
        new = tl.maximum(greatest, tl.max(x, 1))
        total = total * tl.exp2(log2_e * (greatest - new)) + tl.sum(tl.exp2(log2_e * (x - new[:, None])), 1)
        greatest = new
    for start in tl.range(0, T, B1):
        j = start + tl.arange(0, B1)
        mask = (i < N0)[:, None] & (j < T)[None, :]
        x = tl.load(x_ptr + i[:, None] * T + j[None, :], mask)
        z = tl.exp2(log2_e * (x - greatest[:, None])) / total[:, None]
        tl.store(z_ptr + i[:, None] * T + j[None, :], z, mask)


@correct
def puzzle_8_long_softmax():
    x = normal(4, 200)
    z = np.empty_like(x)
    softmax_kernel[(4,)](x, z, 4, 32, 200, B0=1, B1=32)
    return [(z, softmax(x))]


@triton.jit
def flashatt_kernel(q_ptr, k_ptr, v_ptr, z_ptr, N0, T, B0: tl.constexpr, B1: tl.constexpr):
    i = tl.program_id(0) * B0 + tl.arange(0, B0)
    q = tl.load(q_ptr + i, i < N0, 0)
    greatest = tl.full((B0,), -1.0e6, tl.float32)
    total, z = tl.zeros((B0,), tl.float32), tl.zeros((B0,), tl.float32)
    for start in tl.range(0, T, B1):
        j = start + tl.arange(0, B1)
        k, v = tl.load(k_ptr + j, j < T, 0), tl.load(v_ptr + j, j < T, 0)
        scores = tl.where((j < T)[None, :], q[:, None] * k[None, :], -1.0e6)
        new = tl.maximum(greatest, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(greatest - new)
        total = total * shrink + tl.sum(p, 1)
        z = z * shrink + tl.sum(p * v[None, :], 1)
        greatest = new
    tl.store(z_ptr + i, z / total, i < N0)


@correct
def puzzle_9_flash_attention_of_scalars():
    q, k, v = (normal(200, seed=s) for s in range(3))
    z = np.empty_like(q)
    flashatt_kernel[(4,)](q, k, v, z, 200, 200, B0=64, B1=32)
    return [(z, softmax(q[:, None] * k) @ v)]


@triton.jit
def conv2d_kernel(x_ptr, k_ptr, z_ptr, N0, H, W, KH: tl.constexpr, KW: tl.constexpr, B0: tl.constexpr):
    i = tl.program_id(0) * B0 + tl.arange(0, B0)[:, None, None]
    h, w = tl.arange(0, KH)[None, :, None], tl.arange(0, KW)[None, None, :]
    k = tl.load(k_ptr + h * KW + w)
    for j in tl.range(0, H):
        for l in tl.range(0, W):  # noqa: E741 - as the puzzle names it
            mask = (i < N0) & (j + h < H) & (l + w < W)
            x = tl.load(x_ptr + i * H * W + (j + h) * W + l + w, mask, 0)
            z = tl.sum(tl.sum(x * k, 2), 1)
            batch = tl.program_id(0) * B0 + tl.arange(0, B0)
            tl.store(z_ptr + batch * H * W + j * W + l, z, batch < N0)


@correct
def puzzle_10_convolution():
    x, k, z = normal(4, 8, 8), normal(4, 4), np.empty((4, 8, 8), "f4")
    conv2d_kernel[(4,)](x, k, z, 4, 8, 8, KH=4, KW=4, B0=1)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 3), (0, 3))), (4, 4), axis=(1, 2))
    return [(z, (windows * k).sum((-1, -2)))]


@triton.jit
def dot_kernel(
    x_ptr, y_ptr, z_ptr, N0, N1, N2, MID, B0: tl.constexpr, B1: tl.constexpr, B2: tl.constexpr, B_MID: tl.constexpr
):
    j = (tl.program_id(0) * B0 + tl.arange(0, B0))[None, :, None]
    k = (tl.program_id(1) * B1 + tl.arange(0, B1))[None, None, :]
    i = (tl.program_id(2) * B2 + tl.arange(0, B2))[:, None, None]
    z = tl.zeros((B2, B0, B1), tl.float32)
    for start in tl.range(0, MID, B_MID):
        right, down = (start + tl.arange(0, B_MID))[None, None, :], (start + tl.arange(0, B_MID))[None, :, None]
        x = tl.load(x_ptr + i * N0 * MID + j * MID + right, (i < N2) & (j < N0) & (right < MID), 0)
        y = tl.load(y_ptr + i * MID * N1 + down * N1 + k, (i < N2) & (down < MID) & (k < N1), 0)
        z += tl.dot(x, y)
    tl.store(z_ptr + i * N0 * N1 + j * N1 + k, z, (i < N2) & (j < N0) & (k < N1))


@correct
def puzzle_11_matrix_product():
    x, y, z = normal(4, 32, 64), normal(4, 64, 32), np.empty((4, 32, 32), "f4")
    dot_kernel[(2, 2, 4)](x, y, z, 32, 32, 4, 64, B0=16, B1=16, B2=1, B_MID=16)
    return [(z, x @ y)]


FPINT = tl.constexpr(8)
GROUP = tl.constexpr(8)


@triton.jit
def quant_dot_kernel(
    scale_ptr, offset_ptr, weight_ptr, activation_ptr, z_ptr, N0, N1, MID,
    B0: tl.constexpr, B1: tl.constexpr, B_MID: tl.constexpr,
):  # fmt: skip
    j = tl.program_id(0) * B0 + tl.arange(0, B0)
    k = tl.program_id(1) * B1 + tl.arange(0, B1)
    bits = tl.arange(0, FPINT) * 4
    z = tl.zeros((B0, B1), tl.float32)
    for start in tl.range(0, MID, B_MID):
        group = start // GROUP + tl.arange(0, B_MID // GROUP)
        mask = (j < N0)[:, None] & (group < MID // GROUP)[None, :]
        scale = tl.load(scale_ptr + j[:, None] * (MID // GROUP) + group[None, :], mask, 0)
        weight = tl.load(weight_ptr + j[:, None] * (MID // FPINT) + group[None, :], mask, 0)
        shift = (tl.load(offset_ptr + j, j < N0, 0)[:, None] >> bits[None, :]) & 0xF
        weight = (weight[:, :, None] >> bits) & 0xF
        weight = (scale[:, :, None] * (weight - shift[:, :, None])).reshape(B0, B_MID)
        inner = start + tl.arange(0, B_MID)
        there = (inner < MID)[:, None] & (k < N1)[None, :]
        z += tl.dot(weight, tl.load(activation_ptr + inner[:, None] * N1 + k[None, :], there, 0))
    tl.store(z_ptr + j[:, None] * N1 + k[None, :], z, (j < N0)[:, None] & (k < N1)[None, :])


def unpacked(words):
    return (words[..., None] >> (np.arange(8) * 4)) & 0xF


@correct
def puzzle_12_quantised_matrix_product():
    random = np.random.default_rng(0)
    weight, offset = (random.integers(-(2**31), 2**31, shape).astype("i4") for shape in ((32, 8), 32))
    scale, activation, z = normal(32, 8), normal(64, 32), np.empty((32, 32), "f4")
    quant_dot_kernel[(2, 2)](scale, offset, weight, activation, z, 32, 32, 64, B0=16, B1=16, B_MID=64)
    full = np.repeat(scale, 8, 1) * (unpacked(weight).reshape(32, 64) - np.repeat(unpacked(offset), 8, 1))
    return [(z / 10, full @ activation / 10)]
