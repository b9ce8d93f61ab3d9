"""Correct kernels in the manner of servers of language models: tokens sorted to experts, states kept between steps."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.kernels.correct.table import correct, normal


@triton.jit
def count_tokens_kernel(experts, counts, n, EXPERTS: tl.constexpr, B: tl.constexpr):
    part = tl.program_id(0)
    row = counts + (part + 1) * EXPERTS
    for k in range(part * B, tl.minimum(part * B + B, n)):
        place = row + tl.load(experts + k)
        tl.store(place, tl.load(place) + 1)


@triton.jit
def sum_counts_kernel(counts, parts, EXPERTS: tl.constexpr):
    column = counts + tl.program_id(0)
    total = 0
    for part in range(1, parts + 1):
        total += tl.load(column + part * EXPERTS)
        tl.store(column + part * EXPERTS, total)


@triton.jit
def place_tokens_kernel(experts, counts, starts, places, n, EXPERTS: tl.constexpr, B: tl.constexpr):
    part = tl.program_id(0)
    row = counts + part * EXPERTS
    for k in range(part * B, tl.minimum(part * B + B, n)):
        expert = tl.load(experts + k)
        rank = tl.load(row + expert)
        tl.store(places + tl.load(starts + expert) + rank, k)
        tl.store(row + expert, rank + 1)


@correct
def tokens_placed_by_expert():
    experts = np.random.default_rng(0).integers(0, 4, 30).astype("i4")
    counts, places = np.zeros((9, 4), "i4"), np.full(30, -1, "i4")
    count_tokens_kernel[(8,)](experts, counts, 30, EXPERTS=4, B=4)
    sum_counts_kernel[(4,)](counts, 8, EXPERTS=4)
    starts = np.concatenate([[0], np.cumsum(counts[-1])]).astype("i4")
    place_tokens_kernel[(8,)](experts, counts, starts, places, 30, EXPERTS=4, B=4)
    return [(places, np.argsort(experts, kind="stable"))]


@triton.jit
def convolve_step_kernel(x, weights, state, out, sizes, WIDTH: tl.constexpr, B: tl.constexpr):
    channels, kept = sizes
    channel = tl.program_id(1) * B + tl.arange(0, B)
    is_one = channel < channels
    place = tl.program_id(0) * channels + channel
    newest = tl.load(x + place, is_one)
    total = tl.zeros((B,), tl.float32)
    for k in tl.static_range(WIDTH):
        value = newest if k == WIDTH - 1 else tl.load(state + place * kept + k, is_one)
        total += value * tl.load(weights + channel * WIDTH + k, is_one)
        if k > 0:
            tl.store(state + place * kept + k - 1, value, is_one)
    tl.store(out + place, total * tl.sigmoid(total), is_one)


@correct
def one_step_of_a_convolution_whose_state_moves_on():
    x, weights, state = normal(2, 10), normal(10, 4), normal(2, 10, 3)
    window, out = np.concatenate([state, x[..., None]], -1), np.empty_like(x)
    convolve_step_kernel[(2, 2)](x, weights, state, out, (10, 3), WIDTH=4, B=8)
    total = (window * weights).sum(-1)
    return [(out, total / (1 + np.exp(-total))), (state, window[..., 1:])]


@triton.jit
def merge_kernel(first, first_scale, second, second_scale, out, width, B: tl.constexpr):
    token = tl.program_id(0)
    a, b = tl.load(first_scale + token), tl.load(second_scale + token)
    a = float("-inf") if a == float("inf") else a
    b = float("-inf") if b == float("inf") else b
    top = tl.maximum(a, b)
    a, b = tl.exp(a - top), tl.exp(b - top)
    column = tl.arange(0, B)
    x = tl.load(first + token * width + column, column < width)
    y = tl.load(second + token * width + column, column < width)
    tl.store(out + token * width + column, (x * a + y * b) / (a + b), column < width)


@correct
def parts_of_attention_merged():
    first, second, out = normal(3, 20), normal(3, 20, seed=1), np.empty((3, 20), "f4")
    scales = np.array([[1, np.inf, -2], [0.5, 2, 3]], "f4")
    merge_kernel[(3,)](first, scales[0], second, scales[1], out, 20, B=32)
    weights = np.exp(np.where(np.isinf(scales), -np.inf, scales))
    a, b = (weights / weights.sum(0))[..., None]
    return [(out, first * a + second * b)]


@triton.jit
def packed_look_back_kernel(x, out, words, n, B: tl.constexpr):
    """Each program publishes its sum, then the sum so far, in a word of 64 bits: the upper half, and which it is."""
    program = tl.program_id(0)
    place = program * B + tl.arange(0, B)
    values = tl.load(x + place, place < n, other=0.0)
    own, before = tl.sum(values, 0), 0.0
    bits = own.to(tl.uint32, bitcast=True).to(tl.uint64)
    if program == 0:
        tl.atomic_xchg(words, (bits << 32) | 2, sem="release")
    else:
        tl.atomic_xchg(words + program, (bits << 32) | 1, sem="release")
        other, state = program - 1, tl.full((), 1, tl.uint64)
        while state != 2:
            word = tl.atomic_or(words + other, 0, sem="acquire")
            while (word & 3) == 0:
                word = tl.atomic_or(words + other, 0, sem="acquire")
            state = word & 3
            before += (word >> 32).to(tl.uint32).to(tl.float32, bitcast=True)
            other -= 1
        bits = (before + own).to(tl.uint32, bitcast=True).to(tl.uint64)
        tl.atomic_xchg(words + program, (bits << 32) | 2, sem="release")
    tl.store(out + place, tl.cumsum(values, 0) + before, place < n)


@correct
def running_sum_that_looks_back_at_packed_words():
    x = np.random.default_rng(0).integers(0, 9, 300).astype("f4")
    out = np.empty_like(x)
    packed_look_back_kernel[(10,)](x, out, np.zeros(10, "u8"), 300, B=32)
    return [(out, x.cumsum())]
