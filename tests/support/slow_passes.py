"""Triton kernels that take turns or passes that give nothing, each beside a repaired twin; `# slow` marks the line."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def mean_of_padded(x, lengths, out, MOST: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    length = tl.load(lengths + row)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, MOST, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * MOST + at, mask=at < length, other=0.0)
    tl.store(out + row, tl.sum(total, 0) / length)


@triton.jit
def sum_of_slots(items, counts, table, out, SLOTS: tl.constexpr, WIDTH: tl.constexpr):
    own, column = tl.program_id(0), tl.arange(0, WIDTH)
    count = tl.load(counts + own)
    total = tl.zeros((WIDTH,), tl.float32)
    for slot in range(SLOTS):  # slow
        item = tl.load(items + own * SLOTS + slot)
        row = tl.load(table + item * WIDTH + column)
        total += tl.where(slot < count, row, 0.0)
    tl.store(out + own * WIDTH + column, total)


@triton.jit
def sum_of_filled_slots(items, counts, table, out, SLOTS: tl.constexpr, WIDTH: tl.constexpr):
    own, column = tl.program_id(0), tl.arange(0, WIDTH)
    total = tl.zeros((WIDTH,), tl.float32)
    for slot in range(tl.load(counts + own)):
        item = tl.load(items + own * SLOTS + slot)
        total += tl.load(table + item * WIDTH + column)
    tl.store(out + own * WIDTH + column, total)


@triton.jit
def attend_near(q, k, v, out, n, WINDOW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + inner[None, :])
    total = tl.zeros((BM, D), tl.float32)
    norm = tl.zeros((BM,), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM, BN):  # slow
        keys = start + tl.arange(0, BN)
        scores = tl.dot(query, tl.load(k + keys[None, :] * D + inner[:, None]))
        distance = rows[:, None] - keys[None, :]
        weights = tl.where((distance >= 0) & (distance < WINDOW), tl.exp(scores), 0.0)
        norm += tl.sum(weights, 1)
        total = tl.dot(weights.to(v.dtype.element_ty), tl.load(v + keys[:, None] * D + inner[None, :]), total)
    tl.store(out + rows[:, None] * D + inner[None, :], (total / norm[:, None]).to(out.dtype.element_ty))


@triton.jit
def attend_within_window(q, k, v, out, n, WINDOW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + inner[None, :])
    total = tl.zeros((BM, D), tl.float32)
    norm = tl.zeros((BM,), tl.float32)
    first = tl.maximum(0, tl.program_id(0) * BM - WINDOW) // BN * BN
    for start in range(first, (tl.program_id(0) + 1) * BM, BN):
        keys = start + tl.arange(0, BN)
        scores = tl.dot(query, tl.load(k + keys[None, :] * D + inner[:, None]))
        distance = rows[:, None] - keys[None, :]
        weights = tl.where((distance >= 0) & (distance < WINDOW), tl.exp(scores), 0.0)
        norm += tl.sum(weights, 1)
        total = tl.dot(weights.to(v.dtype.element_ty), tl.load(v + keys[:, None] * D + inner[None, :]), total)
    tl.store(out + rows[:, None] * D + inner[None, :], (total / norm[:, None]).to(out.dtype.element_ty))


@triton.jit
def all_experts(x, weights, experts, out, EXPERTS: tl.constexpr, BM: tl.constexpr, D: tl.constexpr):
    rows, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    tile = tl.load(x + rows[:, None] * D + inner[None, :])
    own = tl.load(experts + rows)
    total = tl.zeros((BM, D), tl.float32)
    for expert in range(EXPERTS):  # slow
        product = tl.dot(tile, tl.load(weights + expert * D * D + inner[:, None] * D + inner[None, :]))
        total += tl.where((own == expert)[:, None], product, 0.0)
    tl.store(out + rows[:, None] * D + inner[None, :], total.to(out.dtype.element_ty))


@triton.jit
def own_expert(x, weights, experts, out, EXPERTS: tl.constexpr, BM: tl.constexpr, D: tl.constexpr):
    rows, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    tile = tl.load(x + rows[:, None] * D + inner[None, :])
    expert = tl.load(experts + tl.program_id(0))
    product = tl.dot(tile, tl.load(weights + expert * D * D + inner[:, None] * D + inner[None, :]))
    tl.store(out + rows[:, None] * D + inner[None, :], product.to(out.dtype.element_ty))


@triton.jit
def sum_of_segment(x, segments, out, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):  # slow
        at = start + tl.arange(0, BLOCK)
        total += tl.where(tl.load(segments + at) == tl.program_id(0), tl.load(x + at), 0.0)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def sum_of_sorted_segment(x, segments, out, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    end = tl.load(segments + tl.program_id(0) + 1)
    for start in range(tl.load(segments + tl.program_id(0)), end, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < end, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def softmax_in_three(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    greatest = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        greatest = tl.maximum(greatest, tl.load(x + row + at, mask=at < n, other=float("-inf")).to(tl.float32))
    top = tl.max(greatest, 0)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):  # slow
        at = start + tl.arange(0, BLOCK)
        sums += tl.exp(tl.load(x + row + at, mask=at < n, other=float("-inf")).to(tl.float32) - top)
    norm = 1 / tl.sum(sums, 0)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + row + at, mask=at < n, other=float("-inf")).to(tl.float32)
        tl.store(out + row + at, (tl.exp(values - top) * norm).to(out.dtype.element_ty), mask=at < n)


@triton.jit
def softmax_online(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    greatest = tl.full((BLOCK,), -1e30, tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + row + at, mask=at < n, other=float("-inf")).to(tl.float32)
        greater = tl.maximum(greatest, values)
        sums = sums * tl.exp(greatest - greater) + tl.exp(values - greater)
        greatest = greater
    top = tl.max(greatest, 0)
    norm = 1 / tl.sum(sums * tl.exp(greatest - top), 0)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + row + at, mask=at < n, other=float("-inf")).to(tl.float32)
        tl.store(out + row + at, (tl.exp(values - top) * norm).to(out.dtype.element_ty), mask=at < n)


@triton.jit
def product_of_parts(a, b, c, K, PARTS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.program_id(2) * BK + tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.cdiv(K, BK * PARTS)):
        rest = K - k * (BK * PARTS)
        left = tl.load(a + rows[:, None] * K + (k * BK * PARTS + ks)[None, :], mask=ks[None, :] < rest, other=0.0)
        right = tl.load(
            b + (k * BK * PARTS + ks)[:, None] * 4096 + columns[None, :], mask=ks[:, None] < rest, other=0.0
        )
        total = tl.dot(left, right, total)
    tl.atomic_add(c + rows[:, None] * 4096 + columns[None, :], total)  # slow


@triton.jit
def convolve(x, weights, out, n, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for tap in range(TAPS):
        total += tl.load(weights + tap) * tl.load(x + at - tap, mask=at - tap >= 0, other=0.0)
    tl.store(out + at, total)


@triton.jit
def sum_above_mean(x, means, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    mean = tl.load(means + row)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        values = tl.load(x + row * n + start + tl.arange(0, BLOCK))
        total += tl.where(values > mean, values, 0.0)
    tl.store(out + row, tl.sum(total, 0))


@triton.jit
def fourier_sums(x, out, n, BLOCK: tl.constexpr):
    frequency = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(n):
        total += tl.load(x + step) * tl.cos(frequency.to(tl.float32) * step)  # slow
    tl.store(out + frequency, total)


@triton.jit
def fourier_sums_by_turning(x, out, n, BLOCK: tl.constexpr):
    frequency = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    turn, before, now = 2 * tl.cos(frequency.to(tl.float32)), tl.cos(frequency.to(tl.float32)), frequency * 0.0 + 1.0
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(n):
        total += tl.load(x + step) * now
        before, now = now, turn * now - before
    tl.store(out + frequency, total)


@triton.jit
def waves(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.sin(tl.load(x + at)))


@triton.jit
def softmax_by_output(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        weights = tl.exp(tl.load(x + row + at))
        sums += weights
        tl.store(out + row + at, weights)  # slow
    norm = 1 / tl.sum(sums, 0)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(out + row + at, tl.load(out + row + at) * norm)


@triton.jit
def softmax_again(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        sums += tl.exp(tl.load(x + row + at))
    norm = 1 / tl.sum(sums, 0)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(out + row + at, tl.exp(tl.load(x + row + at)) * norm)


@triton.jit
def add_and_norm(x, y, sums, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = row + start + tl.arange(0, BLOCK)
        added = tl.load(x + at) + tl.load(y + at)
        tl.store(sums + at, added)
        squares += added * added
    norm = tl.rsqrt(tl.sum(squares, 0) / n)
    for start in range(0, n, BLOCK):
        at = row + start + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(sums + at) * norm)


@triton.jit
def attend_in_floats(q, k, v, out, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + inner[None, :])
    total = tl.zeros((BM, D), tl.float32)
    norm = tl.zeros((BM,), tl.float32)
    for start in range(0, n, BN):
        keys = start + tl.arange(0, BN)
        weights = tl.exp(tl.dot(query, tl.load(k + keys[None, :] * D + inner[:, None])))
        norm += tl.sum(weights, 1)
        values = tl.load(v + keys[:, None] * D + inner[None, :]).to(tl.float32)
        total = tl.dot(weights, values, total)  # slow
    tl.store(out + rows[:, None] * D + inner[None, :], (total / norm[:, None]).to(out.dtype.element_ty))


@triton.jit
def attend(q, k, v, out, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + inner[None, :])
    total = tl.zeros((BM, D), tl.float32)
    norm = tl.zeros((BM,), tl.float32)
    for start in range(0, n, BN):
        keys = start + tl.arange(0, BN)
        weights = tl.exp(tl.dot(query, tl.load(k + keys[None, :] * D + inner[:, None])))
        norm += tl.sum(weights, 1)
        values = tl.load(v + keys[:, None] * D + inner[None, :])
        total = tl.dot(weights.to(v.dtype.element_ty), values, total)
    tl.store(out + rows[:, None] * D + inner[None, :], (total / norm[:, None]).to(out.dtype.element_ty))


@triton.jit
def distances(a, b, out, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + ks[None, :])
        right = tl.load(b + columns[:, None] * K + ks[None, :])
        apart = left[:, None, :] - right[None, :, :]
        total += tl.sum(apart * apart, 2)  # slow
    tl.store(out + rows[:, None] * 4096 + columns[None, :], total)


@triton.jit
def distances_by_product(a, b, out, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    of_rows = tl.zeros((BM, BK), tl.float32)
    of_columns = tl.zeros((BK, BN), tl.float32)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + ks[None, :])
        right = tl.load(b + columns[None, :] * K + ks[:, None])
        of_rows += left * left
        of_columns += right * right
        total = tl.dot(left, right, total)
    squares = tl.sum(of_rows, 1)[:, None] + tl.sum(of_columns, 0)[None, :]
    tl.store(out + rows[:, None] * 4096 + columns[None, :], squares - 2 * total)


@triton.jit
def cumulate(x, out, BLOCK: tl.constexpr):
    program, at = tl.program_id(0), tl.arange(0, BLOCK)
    before = tl.zeros((BLOCK,), tl.float32)
    for tile in range(program):  # slow
        before += tl.load(x + tile * BLOCK + at)
    own = tl.cumsum(tl.load(x + program * BLOCK + at), 0)
    tl.store(out + program * BLOCK + at, own + tl.sum(before, 0))


@triton.jit
def cumulate_from(x, sums, out, BLOCK: tl.constexpr):
    program, at = tl.program_id(0), tl.arange(0, BLOCK)
    own = tl.cumsum(tl.load(x + program * BLOCK + at), 0)
    tl.store(out + program * BLOCK + at, own + tl.load(sums + program))


@triton.jit
def softmax_of_columns(x, out, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    mask = column < COLUMNS
    at = tl.program_id(0) * COLUMNS + column
    values = tl.load(x + at, mask=mask, other=float("-inf"))
    weights = tl.exp(values - tl.max(values, 0))
    tl.store(out + at, weights / tl.sum(weights, 0), mask=mask)


@triton.jit
def softmax_of_row(x, out, n, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    mask = column < n
    at = tl.program_id(0) * n + column
    values = tl.load(x + at, mask=mask, other=float("-inf"))
    weights = tl.exp(values - tl.max(values, 0))
    tl.store(out + at, weights / tl.sum(weights, 0), mask=mask)


@triton.jit
def squared_differences(a, b, out, K, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(K):
        difference = tl.load(a + k * BM + row)[:, None] - tl.load(b + k * BN + column)[None, :]
        total += difference * difference  # slow
    tl.store(out + row[:, None] * BN + column[None, :], total)


@triton.jit
def greatest_differences(a, b, out, K, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(K):
        difference = tl.load(a + k * BM + row)[:, None] - tl.load(b + k * BN + column)[None, :]
        total = tl.maximum(total, tl.abs(difference))
    tl.store(out + row[:, None] * BN + column[None, :], total)


@triton.jit
def sum_own_edges(x, targets, out, n, WIDTH: tl.constexpr):
    own, column = tl.program_id(0), tl.arange(0, WIDTH)
    total = tl.zeros((WIDTH,), tl.float32)
    for edge in range(n):  # slow
        if tl.load(targets + edge) == own:
            total += tl.load(x + edge * WIDTH + column)
    tl.store(out + own * WIDTH + column, total)


@triton.jit
def sum_sorted_edges(x, first, out, WIDTH: tl.constexpr):
    own, column = tl.program_id(0), tl.arange(0, WIDTH)
    total = tl.zeros((WIDTH,), tl.float32)
    for edge in range(tl.load(first + own), tl.load(first + own + 1)):
        total += tl.load(x + edge * WIDTH + column)
    tl.store(out + own * WIDTH + column, total)


@triton.jit
def sum_signed_edges(x, targets, out, n, WIDTH: tl.constexpr):
    own, column = tl.program_id(0), tl.arange(0, WIDTH)
    total = tl.zeros((WIDTH,), tl.float32)
    for edge in range(n):
        if tl.load(targets + edge) == own:
            total += tl.load(x + edge * WIDTH + column)
        else:
            total -= tl.load(x + edge * WIDTH + column)
    tl.store(out + own * WIDTH + column, total)


@triton.jit
def sum_number_by_number(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for earlier in range(n):  # slow
        total += tl.where(at >= earlier, tl.load(x + earlier), 0.0)
    tl.store(out + at, total)


@triton.jit
def turn_state(x, weights, out, n, H: tl.constexpr):
    inner = tl.arange(0, H)
    state = tl.zeros((H,), tl.float32)
    for turn in range(n):
        place = (tl.program_id(0) * n + turn) * H + inner
        matrix = tl.load(weights + inner[:, None] * H + inner[None, :])  # slow
        state = libdevice.exp(tl.sum(matrix * state[None, :], 1) + tl.load(x + place))
        tl.store(out + place, state)


@triton.jit
def turn_state_once(x, weights, out, n, H: tl.constexpr):
    inner = tl.arange(0, H)
    matrix = tl.load(weights + inner[:, None] * H + inner[None, :])
    state = tl.zeros((H,), tl.float32)
    for turn in range(n):
        place = (tl.program_id(0) * n + turn) * H + inner
        state = libdevice.exp(tl.sum(matrix * state[None, :], 1) + tl.load(x + place))
        tl.store(out + place, state)


@triton.jit
def add_under_lock(x, out, lock, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * BLOCK + at)
    while tl.atomic_cas(lock, 0, 1) == 1:  # slow
        pass
    tl.store(out + at, tl.load(out + at) + values)
    tl.atomic_xchg(lock, 0)


@triton.jit
def store_parts(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at))
