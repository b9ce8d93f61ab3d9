"""Triton kernels that compare where one operation does, each beside a repaired twin; `# slow` marks the line."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def count_bin_by_bin(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bins = tl.load(x + at, mask=at < n, other=-1)
    for each in range(BINS):
        count = tl.sum((bins == each).to(tl.int32), 0)  # slow
        tl.store(out + tl.program_id(0) * BINS + each, count)


@triton.jit
def count_by_pairs(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bins, each = tl.load(x + at, mask=at < n, other=-1), tl.arange(0, BINS)
    counts = tl.sum((bins[:, None] == each[None, :]).to(tl.int32), 0)  # slow
    tl.store(out + tl.program_id(0) * BINS + each, counts)


@triton.jit
def histogram_of_tile(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bins = tl.load(x + at, mask=at < n, other=0)
    tl.store(out + tl.program_id(0) * BINS + tl.arange(0, BINS), tl.histogram(bins, BINS, mask=at < n))


@triton.jit
def sums_before_by_mask(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * BLOCK + at)
    before = at[:, None] >= at[None, :]
    tl.store(
        out + tl.program_id(0) * BLOCK + at,
        tl.sum(tl.where(before, values[None, :], 0.0), 1),  # slow
    )


@triton.jit
def sums_before(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.cumsum(tl.load(x + at), 0))


@triton.jit
def sums_of_long_rows(x, out, n, BLOCK: tl.constexpr):
    row, total = tl.program_id(0) * n, 0.0
    for start in range(0, n, BLOCK):
        at = row + start + tl.arange(0, BLOCK)
        values = tl.load(x + at)
        tl.store(out + at, tl.cumsum(values, 0) + total)
        total += tl.sum(values, 0)


@triton.jit
def median_by_ranks(x, out, BLOCK: tl.constexpr):
    values = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    ranks = tl.sum((values[None, :] < values[:, None]).to(tl.int32), 1)  # slow
    tl.store(out + tl.program_id(0), tl.sum(tl.where(ranks == BLOCK // 2, values, 0.0), 0))


@triton.jit
def median_by_sort(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    ordered = tl.sort(tl.load(x + tl.program_id(0) * BLOCK + at))
    tl.store(out + tl.program_id(0), tl.sum(tl.where(at == BLOCK // 2, ordered, 0.0), 0))


@triton.jit
def greatest_in_turns(x, out, K: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * BLOCK + at)
    for k in range(K):
        tl.store(out + row * K + k, tl.max(values, 0))  # slow
        values = tl.where(at == tl.argmax(values, 0), float("-inf"), values)


@triton.jit
def greatest_at_once(x, out, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    greatest = tl.topk(tl.load(x + row * BLOCK + tl.arange(0, BLOCK)), K)
    tl.store(out + row * K + tl.arange(0, K), greatest)


@triton.jit
def look_up_in_turns(x, table, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wanted = tl.load(x + at)
    found = tl.zeros((BLOCK,), tl.float32)
    for each in range(n):
        found = tl.where(wanted == each, tl.load(table + each), found)  # slow
    tl.store(out + at, found)


@triton.jit
def look_up(x, table, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wanted = tl.load(x + at)
    tl.store(out + at, tl.load(table + wanted, mask=wanted < n))


@triton.jit
def count_written_bins(x, out, BLOCK: tl.constexpr):
    bins = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    for each in tl.static_range(32):
        tl.store(out + tl.program_id(0) * 32 + each, tl.sum((bins == each).to(tl.int32), 0))  # slow


@triton.jit
def count_three_bins(x, out, BLOCK: tl.constexpr):
    bins = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    for each in tl.static_range(3):
        tl.store(out + tl.program_id(0) * 3 + each, tl.sum((bins == each).to(tl.int32), 0))


@triton.jit
def place_in_turns(x, edges, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at)
    place = tl.zeros((BLOCK,), tl.int32)
    for edge in range(n):
        place += (values >= tl.load(edges + edge)).to(tl.int32)  # slow
    tl.store(out + at, place)


@triton.jit
def place_by_halves(x, edges, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at)
    first, last = tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.int32) + n
    for _ in range(10):
        middle = (first + last) // 2
        is_behind = values >= tl.load(edges + middle, mask=middle < n, other=float("inf"))
        first, last = tl.where(is_behind, middle + 1, first), tl.where(is_behind, last, middle)
    tl.store(out + at, first)
