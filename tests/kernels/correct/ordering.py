"""Correct kernels that scan, sort, count and choose, and those whose programs wait for each other."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.kernels.correct.table import correct, normal, softmax


@triton.jit
def running_sum_kernel(x, out, n, B: tl.constexpr):
    row = tl.program_id(0) * n
    carry = 0.0
    for start in range(0, n, B):
        columns = start + tl.arange(0, B)
        value = tl.load(x + row + columns, mask=columns < n, other=0.0)
        tl.store(out + row + columns, carry + tl.cumsum(value, 0), mask=columns < n)
        carry += tl.sum(value, 0)


@correct
def running_sums_with_a_carry():
    x = normal(4, 100)
    out = np.empty_like(x)
    running_sum_kernel[(4,)](x, out, 100, B=32)
    return [(out, x.cumsum(1))]


@triton.jit
def _affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def recurrence_kernel(decay, x, out, D: tl.constexpr, T: tl.constexpr):
    place = tl.program_id(0) * T * D + tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    _, state = tl.associative_scan((tl.load(decay + place), tl.load(x + place)), 0, _affine)
    tl.store(out + place, state)


@correct
def linear_recurrence():
    decay, x = 1 / (1 + np.exp(-normal(2, 16, 8))), normal(2, 16, 8)
    out = np.empty_like(x)
    recurrence_kernel[(2,)](decay.astype("f4"), x, out, D=8, T=16)
    state, expected = np.zeros((2, 8)), []
    for t in range(16):
        state = decay[:, t] * state + x[:, t]
        expected.append(state)
    return [(out, np.stack(expected, 1))]


@triton.jit
def look_back_kernel(x, out, flags, sums, B: tl.constexpr):
    program = tl.program_id(0)
    place = program * B + tl.arange(0, B)
    value = tl.cumsum(tl.load(x + place), 0)
    own = tl.sum(tl.load(x + place), 0)
    before = 0.0
    if program > 0:
        while tl.atomic_add(flags + program - 1, 0, sem="acquire") == 0:
            pass
        before = tl.load(sums + program - 1)
    tl.store(sums + program, before + own)
    tl.debug_barrier()
    tl.atomic_xchg(flags + program, 1, sem="release")
    tl.store(out + place, value + before)


@correct
def running_sum_over_programs_that_wait():
    x = normal(128)
    out = np.empty_like(x)
    look_back_kernel[(8,)](x, out, np.zeros(8, "i4"), np.zeros(8, "f4"), B=16)
    return [(out, x.cumsum())]


@triton.jit
def ticket_kernel(x, order, counter):
    ticket = tl.atomic_add(counter, 1)
    tl.store(order + ticket, tl.load(x + ticket) + 1)


@correct
def work_taken_by_tickets():
    x, order, counter = normal(20), np.empty(20, "f4"), np.zeros(1, "i4")
    ticket_kernel[(20,)](x, order, counter)
    return [(order, x + 1), (counter, [20])]


@triton.jit
def top_kernel(x, values, places, n, TOP: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, B)
    value = tl.load(x + row * n + columns, mask=columns < n, other=-float("inf"))
    for k in tl.static_range(TOP):
        greatest, where = tl.max(value, 0, return_indices=True)
        tl.store(values + row * TOP + k, greatest)
        tl.store(places + row * TOP + k, where)
        value = tl.where(columns == where, -float("inf"), value)


@correct
def greatest_four_of_each_row():
    x = normal(5, 50)
    values, places = np.empty((5, 4), "f4"), np.empty((5, 4), "i4")
    top_kernel[(5,)](x, values, places, 50, TOP=4, B=64)
    order = np.argsort(-x, 1)[:, :4]
    return [(places, order), (values, np.take_along_axis(x, order, 1))]


@triton.jit
def gating_kernel(logits, weights, chosen, counts, EXPERTS: tl.constexpr, TOP: tl.constexpr):
    token = tl.program_id(0)
    experts = tl.arange(0, EXPERTS)
    value = tl.load(logits + token * EXPERTS + experts)
    p = tl.exp(value - tl.max(value, 0))
    p = p / tl.sum(p, 0)
    total = 0.0
    for k in tl.static_range(TOP):
        best = tl.argmax(p, 0)
        share = tl.max(p, 0)
        tl.store(chosen + token * TOP + k, best)
        tl.store(weights + token * TOP + k, share)
        tl.atomic_add(counts + best, 1)
        p = tl.where(experts == best, -1.0, p)
        total += share


@correct
def gating_of_experts():
    logits = normal(12, 8)
    weights, chosen, counts = np.empty((12, 2), "f4"), np.empty((12, 2), "i4"), np.zeros(8, "i4")
    gating_kernel[(12,)](logits, weights, chosen, counts, EXPERTS=8, TOP=2)
    p = softmax(logits)
    order = np.argsort(-p, 1)[:, :2]
    return [
        (chosen, order),
        (weights, np.take_along_axis(p, order, 1)),
        (counts, np.bincount(order.ravel(), minlength=8)),
    ]


@triton.jit
def bins_kernel(x, counts, n, BINS: tl.constexpr, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    mask = place < n
    value = tl.load(x + place, mask=mask)
    own = tl.histogram(value, BINS, mask=mask)
    tl.atomic_add(counts + tl.arange(0, BINS), own)


@correct
def histogram_with_partial_counts():
    x = np.random.default_rng(0).integers(0, 16, 500).astype("i4")
    counts = np.zeros(16, "i4")
    bins_kernel[(4,)](x, counts, 500, BINS=16, B=128)
    return [(counts, np.bincount(x, minlength=16))]


@triton.jit
def sort_kernel(x, out, n, B: tl.constexpr):
    columns = tl.arange(0, B)
    row = tl.program_id(0) * n
    value = tl.load(x + row + columns, mask=columns < n, other=float("inf"))
    tl.store(out + row + columns, tl.sort(value), mask=columns < n)


@correct
def rows_sorted():
    x = normal(3, 50)
    out = np.empty_like(x)
    sort_kernel[(3,)](x, out, 50, B=64)
    return [(out, np.sort(x, 1))]


@triton.jit
def compaction_kernel(x, out, places, count, n, B: tl.constexpr):
    place = tl.arange(0, B)
    value = tl.load(x + place, mask=place < n, other=0.0)
    is_kept = (value > 0) & (place < n)
    rank = tl.cumsum(is_kept.to(tl.int32), 0) - 1
    tl.store(out + rank, value, mask=is_kept)
    tl.store(places + rank, place, mask=is_kept)
    tl.store(count, tl.sum(is_kept.to(tl.int32), 0))


@correct
def positive_numbers_moved_together():
    x = normal(100)
    kept = np.flatnonzero(x > 0)
    out, places, count = np.empty(len(kept), "f4"), np.empty(len(kept), "i4"), np.zeros(1, "i4")
    compaction_kernel[(1,)](x, out, places, count, 100, B=128)
    return [(out, x[kept]), (places, kept), (count, [len(kept)])]


@triton.jit
def last_kernel(x, part, counter, out, n, B: tl.constexpr, P: tl.constexpr):
    program = tl.program_id(0)
    place = program * B + tl.arange(0, B)
    tl.store(part + program, tl.max(tl.load(x + place, mask=place < n, other=-float("inf")), 0))
    if tl.atomic_add(counter, 1, sem="acq_rel") == P - 1:
        tl.store(out, tl.max(tl.load(part + tl.arange(0, P)), 0))
        tl.atomic_xchg(counter, 0)


@correct
def the_last_program_joins_the_parts():
    x = normal(100)
    out, counter = np.empty(1, "f4"), np.zeros(1, "i4")
    last_kernel[(8,)](x, np.empty(8, "f4"), counter, out, 100, B=16, P=8)
    return [(out, [x.max()]), (counter, [0])]


@triton.jit
def union_kernel(edges, parent, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    a = tl.load(edges + place * 2, mask=place < n, other=0)
    b = tl.load(edges + place * 2 + 1, mask=place < n, other=0)
    tl.atomic_min(parent + tl.maximum(a, b), tl.minimum(a, b), mask=place < n)


@correct
def least_neighbours_by_atomics():
    edges = np.random.default_rng(0).integers(0, 20, (40, 2)).astype("i4")
    parent = np.arange(20, dtype="i4")
    union_kernel[(3,)](edges, parent, 40, B=16)
    expected = np.arange(20)
    np.minimum.at(expected, edges.max(1), edges.min(1))
    return [(parent, expected)]


@triton.jit
def search_kernel(x, out, width):
    row = tl.program_id(0)
    i = 0
    while tl.load(x + row * width + i) != 0:
        i += 1
    tl.store(out + row, i)


@correct
def first_zero_of_each_row():
    x = np.ones((5, 8), "i4")
    x[np.arange(5), [3, 0, 7, 5, 1]] = 0
    out = np.empty(5, "i4")
    search_kernel[(5,)](x, out, 8)
    return [(out, [3, 0, 7, 5, 1])]


@triton.jit
def bucket_kernel(x, borders, out, n, n_borders, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    values = tl.load(x + i, i < n)
    low = tl.zeros([B], tl.int64)
    high = tl.full([B], n_borders, tl.int64)
    rest = n_borders + 1
    while rest > 1:
        middle = (low + high) // 2
        inside = middle < n_borders
        is_above = (values > tl.load(borders + middle, mask=inside, other=0)) | (values != values)
        low = tl.where(is_above & inside, middle + 1, low)
        high = tl.where(is_above, high, middle)
        rest = (rest + 1) // 2
    tl.store(out + i, low, i < n)


@correct
def buckets_by_binary_search_beside_lanes_that_were_not_loaded():
    x, borders = np.linspace(-3, 3, 100, dtype="f4"), np.linspace(-2, 2, 37, dtype="f4")
    out = np.empty(100, "i8")
    bucket_kernel[(4,)](x, borders, out, 100, 37, B=32)
    return [(out, np.searchsorted(borders, x))]


@triton.jit
def branchless_kernel(x, borders, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    values = tl.load(x + i, i < n)
    place = tl.zeros([B], tl.int32)
    for step in tl.static_range(3, -1, -1):
        place += (tl.load(borders + place + (1 << step) - 1) < values).to(tl.int32) << step
    tl.store(out + i, place, i < n)


@correct
def branchless_search_beside_lanes_that_were_not_loaded():
    x, borders = np.linspace(-3, 3, 20, dtype="f4"), np.linspace(-2, 2, 15, dtype="f4")
    out = np.empty(20, "i4")
    branchless_kernel[(1,)](x, borders, out, 20, B=32)
    return [(out, np.searchsorted(borders, x))]


@triton.jit
def compact_kernel(x, flags, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    inside = i < n
    is_kept = inside & (tl.load(flags + i, inside) != 0)
    place = tl.cumsum(is_kept.to(tl.int32), 0) - 1
    tl.store(out + place, tl.load(x + i, inside), mask=is_kept)
    kept = tl.load(flags + i, inside) * inside.to(tl.int32)
    tl.store(out + n, tl.sum(kept, 0).to(tl.float32))


@correct
def flags_that_were_not_loaded_beside_a_mask_that_is_off():
    flags, x = np.arange(20) % 3 == 0, np.arange(20, dtype="f4")
    out = np.zeros(21, "f4")
    compact_kernel[(1,)](x, flags.astype("i4"), out, 20, B=32)
    return [(out, [*x[flags], *[0] * 13, 7])]


@triton.jit
def tries_kernel(lock, out, most):
    count = 0
    while tl.atomic_cas(lock, 0, 1) == 1 and count < most:
        count += 1
    tl.store(out + tl.program_id(0), count)


@correct
def a_lock_that_is_tried_a_few_times():
    out = np.empty(4, "i4")
    tries_kernel[(4,)](np.ones(1, "i4"), out, 10)
    return [(out, [10] * 4)]


@triton.jit
def found_kernel(x, flag, wanted, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    if tl.sum((tl.load(x + place) == wanted).to(tl.int32), 0) > 0:
        tl.store(flag, 1)


@correct
def flag_that_any_program_sets():
    flag = np.zeros(1, "i4")
    found_kernel[(4,)](np.arange(64, dtype="i4") % 5, flag, 3, B=16)
    return [(flag, [1])]


@triton.jit
def resetting_kernel(part, counter, out, P: tl.constexpr):
    program = tl.program_id(0)
    tl.store(part + program, program * 2)
    if tl.atomic_add(counter, 1) == P - 1:
        tl.store(out, tl.sum(tl.load(part + tl.arange(0, P)), 0))
        tl.store(counter, 0)


@correct
def counter_reset_by_the_last_program():
    counter, out = np.zeros(1, "i4"), np.zeros(1, "i4")
    resetting_kernel[(8,)](np.zeros(8, "i4"), counter, out, P=8)
    return [(counter, [0]), (out, [56])]


@triton.jit
def handed_over_kernel(x, scratch, out, B: tl.constexpr, M: tl.constexpr):
    row, i = tl.program_id(0) * B, tl.arange(0, B)
    tl.store(scratch + row + i, tl.load(x + row + i))
    tl.debug_barrier()
    left = tl.load(scratch + row + (i + 1) % B)
    largest = tl.max(left, 0)
    tl.store(scratch + row + B - 1 - i, left)
    ahead = tl.arange(0, M)
    for start in range(0, B, M):
        place = x + row + start + ahead
        tl.store(place, tl.load(place) * 2)
    tl.debug_barrier()
    tl.store(out + row + i, tl.load(scratch + row + i) + largest)


@correct
def elements_handed_over_by_barriers():
    x = normal(4, 256)
    out = np.empty_like(x)
    expected = np.roll(x, -1, 1)[:, ::-1] + x.max(1, keepdims=True)
    handed_over_kernel[(4,)](x.copy(), np.empty_like(x), out, B=256, M=64)
    return [(out, expected)]
