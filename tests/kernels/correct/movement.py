"""Correct kernels that move, gather, scatter and convolve."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.kernels.correct.table import correct, normal


@triton.jit
def transpose_kernel(x, out, M, N, B: tl.constexpr):
    rows, columns = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tile = tl.load(x + rows[:, None] * N + columns[None, :], mask=mask)
    tl.store(out + columns[:, None] * M + rows[None, :], tl.trans(tile), mask=tl.trans(mask))


@correct
def transposition():
    x = normal(50, 35)
    out = np.empty((35, 50), "f4")
    transpose_kernel[(4, 3)](x, out, 50, 35, B=16)
    return [(out, x.T)]


@triton.jit
def embedding_kernel(table, index, out, n, D: tl.constexpr, B: tl.constexpr):
    tokens = tl.program_id(0) * B + tl.arange(0, B)
    rows = tl.load(index + tokens, mask=tokens < n, other=0)
    d = tl.arange(0, D)
    mask = tokens[:, None] < n
    value = tl.load(table + rows[:, None] * D + d[None, :], mask=mask)
    tl.store(out + tokens[:, None] * D + d[None, :], value, mask=mask)


@triton.jit
def embedding_backward_kernel(grad, index, table, n, D: tl.constexpr, B: tl.constexpr):
    tokens = tl.program_id(0) * B + tl.arange(0, B)
    mask = tokens < n
    rows = tl.load(index + tokens, mask=mask, other=0)
    d = tl.arange(0, D)
    value = tl.load(grad + tokens[:, None] * D + d[None, :], mask=mask[:, None], other=0.0)
    tl.atomic_add(table + rows[:, None] * D + d[None, :], value, mask=mask[:, None])


@correct
def embedding_and_its_gradient():
    table, index = normal(10, 16), np.random.default_rng(0).integers(0, 10, 25)
    out, above, grad = np.empty((25, 16), "f4"), normal(25, 16), np.zeros_like(table)
    embedding_kernel[(4,)](table, index, out, 25, D=16, B=8)
    embedding_backward_kernel[(4,)](above, index, grad, 25, D=16, B=8)
    expected = np.zeros_like(table)
    np.add.at(expected, index, above)
    return [(out, table[index]), (grad, expected)]


@triton.jit
def concatenation_kernel(x, y, out, nx, ny, B: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.program_id(1) * B + tl.arange(0, B)
    is_left = columns < nx
    left = tl.load(x + row * nx + columns, mask=is_left, other=0.0)
    right = tl.load(y + row * ny + columns - nx, mask=(columns >= nx) & (columns < nx + ny), other=0.0)
    tl.store(out + row * (nx + ny) + columns, tl.where(is_left, left, right), mask=columns < nx + ny)


@correct
def concatenation_of_rows():
    x, y = normal(5, 20), normal(5, 13)
    out = np.empty((5, 33), "f4")
    concatenation_kernel[(5, 3)](x, y, out, 20, 13, B=16)
    return [(out, np.concatenate([x, y], 1))]


@triton.jit
def strided_kernel(x, out, xr, xc, orow, oc, rows, columns, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + tl.arange(0, B)
    mask = (r[:, None] < rows) & (c[None, :] < columns)
    tl.store(
        out + r[:, None] * orow + c[None, :] * oc, tl.load(x + r[:, None] * xr + c[None, :] * xc, mask=mask), mask=mask
    )


@correct
def copy_between_strided_views():
    whole, target = normal(40, 60), np.zeros((60, 80), "f4")
    x, out = whole[5:38:3, ::2], target[:30, 10:21].T
    steps = (stride // 4 for stride in (*x.strides, *out.strides))
    strided_kernel[(1, 2)](x, out, *steps, *x.shape, B=16)
    return [(out, x), (target.sum(), x.sum())]


@triton.jit
def reversal_kernel(x, out, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + n - 1 - place, tl.load(x + place, mask=place < n), mask=place < n)


@correct
def reversal_by_negative_steps():
    x = normal(100)
    out = np.empty_like(x)
    reversal_kernel[(4,)](x, out, 100, B=32)
    return [(out, x[::-1])]


@triton.jit
def convolution_kernel(x, w, out, n, SIZE: tl.constexpr, B: tl.constexpr):
    channel = tl.program_id(0)
    place = tl.program_id(1) * B + tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for tap in tl.static_range(SIZE):
        source = place - (SIZE - 1) + tap
        value = tl.load(x + channel * n + source, mask=(source >= 0) & (source < n), other=0.0)
        total += value * tl.load(w + channel * SIZE + tap)
    tl.store(out + channel * n + place, total * tl.sigmoid(total), mask=place < n)


@correct
def causal_convolution_with_silu():
    x, w = normal(4, 50), normal(4, 3)
    out = np.empty_like(x)
    convolution_kernel[(4, 4)](x, w, out, 50, SIZE=3, B=16)
    full = np.stack([np.convolve(row, taps[::-1])[:50] for row, taps in zip(x, w, strict=True)])
    return [(out, full / (1 + np.exp(-full)))]


@triton.jit
def image_kernel(x, w, out, H, W, CIN: tl.constexpr, COUT: tl.constexpr, B: tl.constexpr):
    pixel = tl.program_id(0) * B + tl.arange(0, B)
    row, column = pixel // W, pixel % W
    outputs = tl.arange(0, COUT)
    total = tl.zeros((B, COUT), tl.float32)
    for dy in tl.static_range(3):
        for dx in tl.static_range(3):
            r, c = row + dy - 1, column + dx - 1
            is_inside = (r >= 0) & (r < H) & (c >= 0) & (c < W) & (pixel < H * W)
            for channel in range(CIN):
                value = tl.load(x + channel * H * W + r * W + c, mask=is_inside, other=0.0)
                weight = tl.load(w + outputs * CIN * 9 + channel * 9 + dy * 3 + dx)
                total += value[:, None] * weight[None, :]
    place = outputs[None, :] * H * W + pixel[:, None]
    tl.store(out + place, total, mask=pixel[:, None] < H * W)


@correct
def convolution_of_an_image_with_padding():
    x, w = normal(2, 7, 9), normal(4, 2, 3, 3)
    out = np.empty((4, 7, 9), "f4")
    image_kernel[(4,)](x, w, out, 7, 9, CIN=2, COUT=4, B=16)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return [(out, np.einsum("cyxab,ocab->oyx", windows, w))]


@triton.jit
def pool_kernel(x, out, where, H, W, B: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.program_id(1) * B + tl.arange(0, B)
    mask = columns < W // 2
    greatest = tl.full((B,), -float("inf"), tl.float32)
    best = tl.zeros((B,), tl.int32)
    for dy in tl.static_range(2):
        for dx in tl.static_range(2):
            place = (row * 2 + dy) * W + columns * 2 + dx
            value = tl.load(x + place, mask=mask, other=-float("inf"))
            best = tl.where(value > greatest, place, best)
            greatest = tl.maximum(greatest, value)
    tl.store(out + row * (W // 2) + columns, greatest, mask=mask)
    tl.store(where + row * (W // 2) + columns, best, mask=mask)


@correct
def greatest_of_two_by_two():
    x = normal(6, 20)
    out, where = np.empty((3, 10), "f4"), np.empty((3, 10), "i4")
    pool_kernel[(3, 1)](x, out, where, 6, 20, B=16)
    return [(out, x.reshape(3, 2, 10, 2).max((1, 3))), (x.ravel()[where], out)]


@triton.jit
def jagged_kernel(x, offsets, out, width, B: tl.constexpr):
    row = tl.program_id(0)
    start, end = tl.load(offsets + row), tl.load(offsets + row + 1)
    for at in range(0, width, B):
        columns = at + tl.arange(0, B)
        value = tl.load(x + start + columns, mask=start + columns < end, other=0.0)
        tl.store(out + row * width + columns, value, mask=columns < width)


@correct
def jagged_rows_to_padded_ones():
    lengths = np.array([3, 0, 17, 9])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype("i8")
    x = normal(29)
    out = np.empty((4, 17), "f4")
    jagged_kernel[(4,)](x, offsets, out, 17, B=8)
    expected = np.zeros((4, 17), "f4")
    for row, (start, length) in enumerate(zip(offsets, lengths, strict=False)):
        expected[row, :length] = x[start : start + length]
    return [(out, expected)]


@triton.jit
def ring_kernel(x, out, n, B: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, B)
    mask = columns < n
    left = tl.load(x + row * n + (columns + n - 1) % n, mask=mask, other=0.0)
    right = tl.load(x + row * n + (columns + 1) % n, mask=mask, other=0.0)
    up = tl.load(x + (row + tl.num_programs(0) - 1) % tl.num_programs(0) * n + columns, mask=mask, other=0.0)
    tl.store(out + row * n + columns, left + right + up, mask=mask)


@correct
def stencil_on_a_ring():
    x = normal(6, 20)
    out = np.empty_like(x)
    ring_kernel[(6,)](x, out, 20, B=32)
    return [(out, np.roll(x, 1, 1) + np.roll(x, -1, 1) + np.roll(x, 1, 0))]


@triton.jit
def cached_kernel(key, cache, slots, n, D: tl.constexpr):
    token = tl.program_id(0)
    slot = tl.load(slots + token)
    if slot < 0:
        return
    d = tl.arange(0, D)
    tl.store(cache + slot * D + d, tl.load(key + token * D + d))


@correct
def tokens_written_into_a_cache():
    key, cache = normal(6, 16), np.zeros((10, 16), "f4")
    slots = np.array([3, -1, 9, 0, -1, 5], "i8")
    cached_kernel[(6,)](key, cache, slots, 6, D=16)
    expected = np.zeros_like(cache)
    expected[slots[slots >= 0]] = key[slots >= 0]
    return [(cache, expected)]
