"""Correct kernels whose programs share memory: buffers, tables, counts and states that several of them change.

Each has a twin with one mistake in `tests.kernels.planted.sharing`.
"""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.kernels.correct.synchronising import zeros
from tests.kernels.correct.table import correct, normal


@triton.jit
def ring_kernel(x, slots, head, tail, out, N: tl.constexpr, SLOTS: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    if tl.program_id(0) == 0:
        for k in range(N):
            value = tl.load(x + k * B + i)
            while tl.atomic_add(tail, 0, sem="acquire") + SLOTS <= k:
                pass
            tl.store(slots + k % SLOTS * B + i, value)
            tl.debug_barrier()
            tl.atomic_xchg(head, k + 1, sem="release")
    else:
        for k in range(N):
            while tl.atomic_add(head, 0, sem="acquire") <= k:
                pass
            value = tl.load(slots + k % SLOTS * B + i)
            tl.debug_barrier()
            tl.atomic_xchg(tail, k + 1, sem="release")
            tl.store(out + k * B + i, value * 2)


@correct
def ring_of_two_slots():
    x, out = normal(6, 16), np.empty((6, 16), "f4")
    ring_kernel[(2,)](x, np.empty((2, 16), "f4"), zeros(1), zeros(1), out, N=6, SLOTS=2, B=16)
    return [(out, x * 2)]


@triton.jit
def sequence_lock_kernel(sequence, pair, out, WRITES: tl.constexpr):
    if tl.program_id(0) == 0:
        for k in range(WRITES):
            tl.atomic_xchg(sequence, 2 * k + 1, sem="acq_rel")
            tl.atomic_xchg(pair, k, sem="release")
            tl.atomic_xchg(pair + 1, 2 * k, sem="release")
            tl.atomic_xchg(sequence, 2 * k + 2, sem="release")
    else:
        before, after = 1, 0
        one, other = 0, 0
        while (before != after) | (before % 2 == 1):
            before = tl.atomic_add(sequence, 0, sem="acquire")
            one = tl.atomic_add(pair, 0, sem="acquire")
            other = tl.atomic_add(pair + 1, 0, sem="acquire")
            after = tl.atomic_add(sequence, 0, sem="acquire")
        tl.store(out + tl.program_id(0), other - 2 * one)


@correct
def pair_that_a_sequence_lock_keeps_together():
    out = zeros(5)
    sequence_lock_kernel[(5,)](zeros(1), zeros(2), out, WRITES=4)
    return [(out, [0] * 5)]


@triton.jit
def table_kernel(x, keys, counts, SLOTS: tl.constexpr):
    key = tl.load(x + tl.program_id(0))
    slot = key % SLOTS
    found = tl.atomic_cas(keys + slot, -1, key)
    while (found != -1) & (found != key):
        slot = (slot + 1) % SLOTS
        found = tl.atomic_cas(keys + slot, -1, key)
    tl.atomic_add(counts + slot, 1)


@correct
def table_of_keys_by_comparison():
    x, keys, counts = np.array([3, 11, 3, 19, 4, 11, 3], "i4"), np.full(8, -1, "i4"), zeros(8)
    table_kernel[(7,)](x, keys, counts, SLOTS=8)
    return [(np.sort(keys), [-1] * 4 + [3, 4, 11, 19]), (np.sort(counts), [0] * 4 + [1, 1, 2, 3])]


@triton.jit
def references_kernel(references, parts, out, P: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(parts + tl.program_id(0) * B + i, tl.program_id(0) + i)
    tl.debug_barrier()
    if tl.atomic_add(references, -1, sem="acq_rel") == 1:
        total = tl.zeros((B,), tl.int32)
        for k in range(P):
            total += tl.load(parts + k * B + i)
            tl.store(parts + k * B + i, 0)
        tl.store(out + i, total)


@correct
def last_holder_of_a_reference_clears():
    parts, out = np.empty((6, 16), "i4"), np.empty(16, "i4")
    references_kernel[(6,)](np.full(1, 6, "i4"), parts, out, P=6, B=16)
    return [(out, 15 + 6 * np.arange(16)), (parts, np.zeros((6, 16)))]


@triton.jit
def twice_checked_kernel(state, table, out, B: tl.constexpr):
    i = tl.arange(0, B)
    if tl.atomic_add(state, 0, sem="acquire") != 2:
        if tl.atomic_cas(state, 0, 1, sem="acquire") == 0:
            tl.store(table + i, i * i)
            tl.debug_barrier()
            tl.atomic_xchg(state, 2, sem="release")
        else:
            while tl.atomic_add(state, 0, sem="acquire") != 2:
                pass
    tl.store(out + tl.program_id(0) * B + i, tl.load(table + i))


@correct
def table_that_is_made_once():
    out = np.empty((5, 16), "i4")
    twice_checked_kernel[(5,)](zeros(1), np.empty(16, "i4"), out, B=16)
    return [(out, np.tile(np.arange(16) ** 2, (5, 1)))]


@triton.jit
def extremes_kernel(x, least, greatest, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    values = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_max(greatest, tl.max(tl.where(i < n, values, -(2**31)), 0), sem="relaxed")
    tl.atomic_min(least, tl.min(tl.where(i < n, values, 2**31 - 1), 0), sem="relaxed")


@correct
def least_and_greatest_of_all_programs():
    x = (normal(100) * 1000).astype("i4")
    least, greatest = np.full(1, 2**31 - 1, "i4"), np.full(1, -(2**31), "i4")
    extremes_kernel[(4,)](x, least, greatest, 100, B=32)
    return [(least, [x.min()]), (greatest, [x.max()])]


@triton.jit
def counts_kernel(x, counts, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    bins = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(counts + bins, 1, mask=i < n, sem="relaxed")


@correct
def counts_of_values():
    x, counts = np.random.default_rng(0).integers(0, 8, 100).astype("i4"), zeros(8)
    counts_kernel[(4,)](x, counts, 100, B=32)
    return [(counts, np.bincount(x, minlength=8))]


@triton.jit
def greatest_float_kernel(x, best):
    value = tl.load(x + tl.program_id(0))
    old = tl.atomic_add(best, 0.0, sem="relaxed")
    seen = old + 1
    while (seen != old) & (value > old):
        seen = old
        old = tl.atomic_cas(best, seen, value)


@correct
def greatest_float_by_comparison():
    x, best = normal(9), np.full(1, -100, "f4")
    greatest_float_kernel[(9,)](x, best)
    return [(best, [x.max()])]


@triton.jit
def generations_kernel(x, count, generation, N: tl.constexpr, STEPS: tl.constexpr, B: tl.constexpr):
    program, i = tl.program_id(0), tl.arange(0, B)
    for step in range(STEPS):
        left = tl.load(x + (step * N + (program + 1) % N) * B + i)
        tl.store(x + ((step + 1) * N + program) * B + i, left + 1)
        tl.debug_barrier()
        if tl.atomic_add(count, 1, sem="acq_rel") == N - 1:
            tl.atomic_xchg(count, 0, sem="relaxed")
            tl.atomic_add(generation, 1, sem="release")
        else:
            while tl.atomic_add(generation, 0, sem="acquire") <= step:
                pass


@correct
def barrier_with_generations():
    x = np.zeros((4, 4, 16), "f4")
    x[0] = normal(4, 16)
    expected = np.stack([np.roll(x[0], -k, 0) + k for k in range(4)])
    generations_kernel[(4,)](x, zeros(1), zeros(1), N=4, STEPS=3, B=16)
    return [(x, expected)]


@triton.jit
def readers_kernel(lock, x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    if tl.program_id(0) % 3 == 0:
        while tl.atomic_cas(lock, 0, -1, sem="acquire") != 0:
            pass
        tl.store(x + i, tl.load(x + i) + 1)
        tl.debug_barrier()
        tl.atomic_xchg(lock, 0, sem="release")
    else:
        readers = -1
        while readers < 0:
            seen = tl.atomic_add(lock, 0, sem="relaxed")
            free = tl.maximum(seen, 0)
            if tl.atomic_cas(lock, free, free + 1, sem="acquire") == free:
                readers = free
        value = tl.load(x + i)
        tl.debug_barrier()
        tl.atomic_add(lock, -1, sem="release")
        tl.store(out + tl.program_id(0) * B + i, value - tl.min(value, 0))


@correct
def lock_of_readers_and_writers():
    x, out = np.zeros(16, "f4"), np.zeros((9, 16), "f4")
    readers_kernel[(9,)](zeros(1), x, out, B=16)
    return [(x, [3] * 16), (out, np.zeros((9, 16)))]


@triton.jit
def visited_kernel(edges, bits, order, count):
    node = tl.load(edges + tl.program_id(0))
    bit = 1 << (node % 32)
    if tl.atomic_or(bits + node // 32, bit, sem="relaxed") & bit == 0:
        tl.store(order + tl.atomic_add(count, 1, sem="relaxed"), node)


@correct
def nodes_that_are_visited_once():
    edges, order, count = np.array([5, 40, 5, 63, 40, 0, 63, 5], "i4"), np.full(8, -1, "i4"), zeros(1)
    visited_kernel[(8,)](edges, zeros(2), order, count)
    return [(np.sort(order), [-1] * 4 + [0, 5, 40, 63]), (count, [4])]


@triton.jit
def stream_lock_kernel(x, out, locks, TILES: tl.constexpr, STEPS: tl.constexpr, PER: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    step, last = tl.program_id(0) * PER, tl.minimum(tl.program_id(0) * PER + PER, TILES * STEPS)
    while step < last:
        tile = step // STEPS
        end = tl.minimum((tile + 1) * STEPS, last)
        total = tl.zeros((B,), tl.float32)
        for k in range(step, end):
            total += tl.load(x + k * B + i)
        while tl.atomic_cas(locks + tile, 0, 1, sem="acquire") != 0:
            pass
        tl.store(out + tile * B + i, tl.load(out + tile * B + i) + total)
        tl.debug_barrier()
        tl.atomic_xchg(locks + tile, 0, sem="release")
        step = end


@correct
def stream_k_with_a_lock_for_each_tile():
    x, out = normal(4, 5, 16), np.zeros((4, 16), "f4")
    stream_lock_kernel[(3,)](x, out, zeros(4), TILES=4, STEPS=5, PER=7, B=16)
    return [(out, x.sum(1))]


@triton.jit
def pool_kernel(x, following, head, out):
    """A stack of free slots; the upper half of its head counts, so that no slot that came back is taken for another."""
    program = tl.program_id(0)
    old = tl.atomic_add(head, 0, sem="acquire")
    seen = old + 1
    while seen != old:
        seen = old
        slot = seen % 256
        after = tl.atomic_add(following + slot, 0, sem="acquire")
        old = tl.atomic_cas(head, seen, (seen // 256 + 1) * 256 + after, sem="acq_rel")
    tl.store(out + program, tl.load(x + seen % 256))


@correct
def slots_of_a_pool():
    x, out = normal(8), np.empty(6, "f4")
    pool_kernel[(6,)](x, np.arange(1, 9, dtype="i4"), zeros(1), out)
    return [(np.sort(out), np.sort(x[:6]))]


@triton.jit
def two_levels_kernel(x, parts, groups, done, out, G: tl.constexpr, P: tl.constexpr):
    group = tl.program_id(0) // P
    tl.store(parts + tl.program_id(0), tl.load(x + tl.program_id(0)))
    if tl.atomic_add(done + group, 1, sem="acq_rel") == P - 1:
        tl.store(groups + group, tl.sum(tl.load(parts + group * P + tl.arange(0, P)), 0))
        if tl.atomic_add(done + G, 1, sem="acq_rel") == G - 1:
            tl.store(out, tl.sum(tl.load(groups + tl.arange(0, G)), 0))


@correct
def sums_of_groups_then_of_all():
    x, out = normal(16), np.empty(1, "f4")
    two_levels_kernel[(16,)](x, np.empty(16, "f4"), np.empty(4, "f4"), zeros(5), out, G=4, P=4)
    return [(out, [x.sum()])]


@triton.jit
def message_kernel(x, box, flag, out, B: tl.constexpr):
    """The flag of a message is a word beside it; a volatile load looks, an atomic acquires."""
    i = tl.arange(0, B)
    if tl.program_id(0) == 0:
        tl.store(box + i, tl.load(x + i) * 3)
        tl.debug_barrier()
        tl.atomic_xchg(flag, 1, sem="release", scope="sys")
    else:
        while tl.load(flag, volatile=True) == 0:
            pass
        if tl.atomic_add(flag, 0, sem="acquire", scope="sys") == 1:
            tl.store(out + i, tl.load(box + i))


@correct
def message_with_a_flag():
    x, out = normal(16), np.empty(16, "f4")
    message_kernel[(2,)](x, np.empty(16, "f4"), zeros(1), out, B=16)
    return [(out, x * 3)]


@triton.jit
def in_place_kernel(x, counter, N: tl.constexpr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    for step in range(STEPS):
        total = tl.load(x + program) + tl.load(x + (program + 1) % N) + tl.load(x + (program + N - 1) % N)
        tl.debug_barrier()
        tl.atomic_add(counter, 1, sem="acq_rel")
        while tl.atomic_add(counter, 0, sem="acquire") < (2 * step + 1) * N:
            pass
        tl.store(x + program, total)
        tl.debug_barrier()
        tl.atomic_add(counter, 1, sem="acq_rel")
        while tl.atomic_add(counter, 0, sem="acquire") < (2 * step + 2) * N:
            pass


@correct
def steps_in_place_that_several_programs_read():
    x = normal(6)
    expected = x.astype("f8")
    for _ in range(3):
        expected = expected + np.roll(expected, 1) + np.roll(expected, -1)
    in_place_kernel[(6,)](x, zeros(1), N=6, STEPS=3)
    return [(x, expected)]


@triton.jit
def flags_kernel(x, box, flags, out, B: tl.constexpr):
    i = tl.arange(0, B)
    if tl.program_id(0) == 0:
        tl.store(box + i, tl.load(x + i) * 3)
        tl.atomic_xchg(flags + i, tl.full((B,), 1, tl.int32), sem="release")
    else:
        raised = 0
        while raised < B:
            raised = tl.sum(tl.atomic_add(flags + i, tl.zeros((B,), tl.int32), sem="acquire"), 0)
        tl.store(out + i, tl.load(box + i))


@correct
def elements_with_a_flag_each():
    x, out = normal(64), np.empty(64, "f4")
    flags_kernel[(2,)](x, np.empty(64, "f4"), zeros(64), out, B=64)
    return [(out, x * 3)]


@triton.jit
def parts_kernel(x, ready, out, N: tl.constexpr):
    if tl.program_id(0) == 0:
        for part in range(N):
            tl.store(x + part, part + 1.0)
            tl.atomic_xchg(ready, part + 1, sem="release")
    else:
        wanted = tl.program_id(0)
        while tl.atomic_add(ready, 0, sem="acquire") < wanted:
            pass
        tl.store(out + wanted - 1, tl.load(x + wanted - 1))


@correct
def parts_that_are_ready_one_after_the_other():
    out = np.empty(5, "f4")
    parts_kernel[(6,)](np.empty(5, "f4"), zeros(1), out, N=5)
    return [(out, np.arange(1, 6))]


@triton.jit
def status_kernel(x, status, aggregate, prefix, out):
    program = tl.program_id(0)
    own = tl.load(x + program)
    tl.store(aggregate + program, own)
    tl.atomic_xchg(status + program, 1, sem="release")
    total = 0.0
    at = program - 1
    while at >= 0:
        state = tl.atomic_add(status + at, 0, sem="acquire")
        while state == 0:
            state = tl.atomic_add(status + at, 0, sem="acquire")
        if state == 2:
            total += tl.load(prefix + at)
            at = -1
        else:
            total += tl.load(aggregate + at)
            at -= 1
    tl.store(prefix + program, total + own)
    tl.atomic_xchg(status + program, 2, sem="release")
    tl.store(out + program, total + own)


@correct
def sums_by_looking_back_at_two_states():
    x, out = normal(9), np.empty(9, "f4")
    status_kernel[(9,)](x, zeros(9), np.empty(9, "f4"), np.empty(9, "f4"), out)
    return [(out, np.cumsum(x.astype("f8")))]


@triton.jit
def reversing_kernel(x, arrived, sense, N: tl.constexpr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    for _step in range(STEPS):
        total = tl.load(x + program) + tl.load(x + (program + 1) % N)
        for half in tl.static_range(2):
            if half == 1:
                tl.store(x + program, total)
            if tl.atomic_add(arrived, 1) == N - 1:
                tl.atomic_xchg(arrived, 0, sem="relaxed")
                tl.atomic_xchg(sense, 1 - half)
            else:
                while tl.atomic_or(sense, 0, sem="acquire") != 1 - half:
                    pass


@correct
def barriers_whose_sense_is_reversed():
    x = normal(5)
    expected = x.astype("f8")
    for _ in range(3):
        expected = expected + np.roll(expected, -1)
    reversing_kernel[(5,)](x, zeros(1), zeros(1), N=5, STEPS=3)
    return [(x, expected)]


@triton.jit
def handshake_kernel(x, box, full, out, N: tl.constexpr):
    for turn in range(N):
        if tl.program_id(0) == 0:
            while tl.atomic_add(full, 0, sem="acquire") != 0:
                pass
            tl.store(box, tl.load(x + turn))
            tl.atomic_xchg(full, 1, sem="release")
        else:
            while tl.atomic_add(full, 0, sem="acquire") != 1:
                pass
            tl.store(out + turn, tl.load(box))
            tl.atomic_xchg(full, 0, sem="release")


@correct
def values_in_a_box_that_is_full_or_empty():
    x, out = normal(6), np.empty(6, "f4")
    handshake_kernel[(2,)](x, np.empty(1, "f4"), zeros(1), out, N=6)
    return [(out, x)]
