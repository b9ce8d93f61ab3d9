"""Twins of the correct kernels that share memory, with one mistake each.

A race is named where the later access is; what is missing for an order stands beside it.
"""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.kernels.planted.table import bug, empty, floats, integers


@bug("data-race", floats(6, 16), floats(2, 16), integers(1), integers(1), empty(6, 16), tensor="slots", grid=(2,))
@triton.jit
def ring_whose_head_is_relaxed(x, slots, head, tail, out):
    i = tl.arange(0, 16)
    if tl.program_id(0) == 0:
        for k in range(6):
            while tl.atomic_add(tail, 0, sem="acquire") + 2 <= k:
                pass
            tl.store(slots + k % 2 * 16 + i, tl.load(x + k * 16 + i))
            tl.debug_barrier()
            tl.atomic_xchg(head, k + 1, sem="relaxed")
    else:
        for k in range(6):
            while tl.atomic_add(head, 0, sem="acquire") <= k:
                pass
            value = tl.load(slots + k % 2 * 16 + i)  # bug
            tl.debug_barrier()
            tl.atomic_xchg(tail, k + 1, sem="release")
            tl.store(out + k * 16 + i, value * 2)


@bug("data-race", floats(6, 16), floats(2, 16), integers(1), integers(1), empty(6, 16), tensor="slots", grid=(2,))
@triton.jit
def ring_that_is_freed_before_it_is_read(x, slots, head, tail, out):
    i = tl.arange(0, 16)
    if tl.program_id(0) == 0:
        for k in range(6):
            while tl.atomic_add(tail, 0, sem="acquire") + 2 <= k:
                pass
            tl.store(slots + k % 2 * 16 + i, tl.load(x + k * 16 + i) * k)
            tl.debug_barrier()
            tl.atomic_xchg(head, k + 1, sem="release")
    else:
        for k in range(6):
            while tl.atomic_add(head, 0, sem="acquire") <= k:
                pass
            tl.atomic_xchg(tail, k + 1, sem="release")
            tl.store(out + k * 16 + i, tl.load(slots + k % 2 * 16 + i))  # bug


@bug("data-race", integers(1), integers(2), integers(5), tensor="pair", grid=(5,))
@triton.jit
def sequence_lock_with_plain_reads(sequence, pair, out):
    if tl.program_id(0) == 0:
        for k in range(4):
            tl.atomic_xchg(sequence, 2 * k + 1, sem="acq_rel")
            tl.atomic_xchg(pair, k, sem="release")  # bug
            tl.atomic_xchg(sequence, 2 * k + 2, sem="release")
    else:
        before, after, one = 1, 0, 0
        while (before != after) | (before % 2 == 1):
            before = tl.atomic_add(sequence, 0, sem="acquire")
            one = tl.load(pair)
            after = tl.atomic_add(sequence, 0, sem="acquire")
        tl.store(out + tl.program_id(0), one)


@bug("data-race", lambda: np.array([3, 11, 3, 3], "i4"), lambda: np.full(8, -1, "i4"), integers(8), tensor="keys")
@triton.jit
def table_that_looks_before_it_writes(x, keys, counts):
    key = tl.load(x + tl.program_id(0))
    slot = key % 8
    found = tl.load(keys + slot)
    while (found != -1) & (found != key):
        slot = (slot + 1) % 8
        found = tl.load(keys + slot)
    tl.store(keys + slot, key)  # bug
    tl.atomic_add(counts + slot, 1)


@bug("data-race", integers(1, 6), integers(6 * 16), integers(16), tensor="parts", grid=(6,))
@triton.jit
def reference_that_is_dropped_relaxed(references, parts, out):
    i = tl.arange(0, 16)
    tl.store(parts + tl.program_id(0) * 16 + i, tl.program_id(0) + i)
    tl.debug_barrier()
    if tl.atomic_add(references, -1, sem="relaxed") == 1:
        tl.store(out + i, tl.load(parts + i))  # bug


@bug("data-race", integers(1, 6), integers(6 * 16), integers(16), tensor="parts", grid=(6,))
@triton.jit
def reference_that_is_dropped_without_acquire(references, parts, out):
    i = tl.arange(0, 16)
    tl.store(parts + tl.program_id(0) * 16 + i, tl.program_id(0) + i)
    tl.debug_barrier()
    if tl.atomic_add(references, -1, sem="release") == 1:
        tl.store(out + i, tl.load(parts + i))  # bug


@bug("data-race", integers(1), lambda: np.zeros(16, "i4"), lambda: np.zeros((5, 16), "i4"), tensor="table", grid=(5,))
@triton.jit
def table_whose_first_check_is_relaxed(state, table, out):
    i = tl.arange(0, 16)
    if tl.atomic_add(state, 0, sem="relaxed") != 2:
        if tl.atomic_cas(state, 0, 1, sem="acquire") == 0:
            tl.store(table + i, i * i)
            tl.debug_barrier()
            tl.atomic_xchg(state, 2, sem="release")
        else:
            while tl.atomic_add(state, 0, sem="acquire") != 2:
                pass
    tl.store(out + tl.program_id(0) * 16 + i, tl.load(table + i))  # bug


@bug("data-race", integers(1), lambda: np.zeros(16, "i4"), lambda: np.zeros((5, 16), "i4"), tensor="state", grid=(5,))
@triton.jit
def table_whose_first_check_is_a_plain_load(state, table, out):
    i = tl.arange(0, 16)
    if tl.load(state) != 2:  # bug
        if tl.atomic_cas(state, 0, 1, sem="acquire") == 0:
            tl.store(table + i, i * i)
            tl.debug_barrier()
            tl.atomic_xchg(state, 2, sem="release")
        else:
            while tl.atomic_add(state, 0, sem="acquire") != 2:
                pass
    tl.store(out + tl.program_id(0) * 16 + i, tl.load(table + i))


@bug("data-race", integers(4, 7), integers(1), tensor="greatest")
@triton.jit
def greatest_by_load_and_store(x, greatest):
    value = tl.load(x + tl.program_id(0)) + tl.program_id(0)
    if value > tl.load(greatest):
        tl.store(greatest, value)  # bug


@bug("data-race", integers(64, 3), integers(8), tensor="counts")
@triton.jit
def counts_without_atomics(x, counts):
    for k in range(16):
        place = counts + tl.load(x + tl.program_id(0) * 16 + k)
        tl.store(place, tl.load(place) + 1)  # bug


@bug("data-race", floats(4, 4, 16), integers(1), integers(1), tensor="x")
@triton.jit
def generations_that_are_announced_relaxed(x, count, generation):
    program, i = tl.program_id(0), tl.arange(0, 16)
    for step in range(3):
        left = tl.load(x + (step * 4 + (program + 1) % 4) * 16 + i)  # bug
        tl.store(x + ((step + 1) * 4 + program) * 16 + i, left + 1)
        tl.debug_barrier()
        if tl.atomic_add(count, 1, sem="relaxed") == 3:
            tl.atomic_xchg(count, 0, sem="relaxed")
            tl.atomic_add(generation, 1, sem="release")
        else:
            while tl.atomic_add(generation, 0, sem="acquire") <= step:
                pass


@bug("kernel-fault", floats(4, 4, 16), integers(1), integers(1))
@triton.jit
def generations_whose_count_is_not_reset(x, count, generation):
    program, i = tl.program_id(0), tl.arange(0, 16)
    for step in range(3):
        left = tl.load(x + (step * 4 + (program + 1) % 4) * 16 + i)
        tl.store(x + ((step + 1) * 4 + program) * 16 + i, left + 1)
        tl.debug_barrier()
        if tl.atomic_add(count, 1) == 3:
            tl.atomic_add(generation, 1)
        else:
            while tl.atomic_add(generation, 0) <= step:  # bug
                pass


@bug("data-race", integers(1), floats(16), empty(9, 16), tensor="x", grid=(9,))
@triton.jit
def reader_that_leaves_before_it_reads(lock, x, out):
    i = tl.arange(0, 16)
    if tl.program_id(0) % 3 == 0:
        while tl.atomic_cas(lock, 0, -1, sem="acquire") != 0:
            pass
        tl.store(x + i, tl.load(x + i) + 1)  # bug
        tl.debug_barrier()
        tl.atomic_xchg(lock, 0, sem="release")
    else:
        seen = 0
        while tl.atomic_cas(lock, seen, seen + 1, sem="acquire") != seen:
            seen = tl.maximum(tl.atomic_add(lock, 0, sem="relaxed"), 0)
        tl.atomic_add(lock, -1, sem="release")
        tl.store(out + tl.program_id(0) * 16 + i, tl.load(x + i))


@bug("data-race", floats(20, 16), lambda: np.zeros((4, 16), "f4"), integers(4), tensor="out", grid=(3,))
@triton.jit
def stream_k_whose_lock_opens_too_early(x, out, locks):
    i = tl.arange(0, 16)
    step, last = tl.program_id(0) * 7, tl.minimum(tl.program_id(0) * 7 + 7, 20)
    while step < last:
        tile = step // 5
        end = tl.minimum((tile + 1) * 5, last)
        total = tl.zeros((16,), tl.float32)
        for k in range(step, end):
            total += tl.load(x + k * 16 + i)
        while tl.atomic_cas(locks + tile, 0, 1, sem="acquire") != 0:
            pass
        total += tl.load(out + tile * 16 + i)
        tl.debug_barrier()
        tl.atomic_xchg(locks + tile, 0, sem="release")
        tl.store(out + tile * 16 + i, total)  # bug
        step = end


@bug("data-race", floats(2, 4, 16), floats(8, 16), integers(8), empty(2, 16), tensor="part", grid=(8,))
@triton.jit
def stream_k_whose_flags_are_plain_stores(x, part, flags, out):
    tile, own = tl.program_id(0) // 4, tl.program_id(0) % 4
    i = tl.arange(0, 16)
    value = tl.load(x + tl.program_id(0) * 16 + i)
    if own > 0:
        tl.store(part + tl.program_id(0) * 16 + i, value)
        tl.debug_barrier()
        tl.store(flags + tl.program_id(0), 1)
    else:
        for other in range(1, 4):
            while tl.atomic_cas(flags + tile * 4 + other, 1, 1, sem="acquire") != 1:
                pass
            value += tl.load(part + (tile * 4 + other) * 16 + i)  # bug
        tl.store(out + tile * 16 + i, value)


@bug("data-race", floats(64), empty(64), integers(8), empty(8), empty(8), tensor="sums", grid=(8,))
@triton.jit
def look_back_at_states_without_acquire(x, out, states, sums, totals):
    program, i = tl.program_id(0), tl.arange(0, 8)
    value = tl.load(x + program * 8 + i)
    tl.store(sums + program, tl.sum(value, 0))
    tl.atomic_xchg(states + program, 1, sem="release")
    before = 0.0
    for at in range(program):
        while tl.atomic_add(states + at, 0, sem="relaxed") == 0:
            pass
        before += tl.load(sums + at)  # bug
    tl.store(out + program * 8 + i, before + tl.cumsum(value, 0))


@bug("data-race", floats(64), empty(64), integers(8), empty(8), empty(8), tensor="sums", grid=(8,))
@triton.jit
def look_back_whose_state_comes_first(x, out, states, sums, totals):
    program, i = tl.program_id(0), tl.arange(0, 8)
    value = tl.load(x + program * 8 + i)
    tl.atomic_xchg(states + program, 1, sem="release")
    tl.store(sums + program, tl.sum(value, 0))
    before = 0.0
    for at in range(program):
        while tl.atomic_add(states + at, 0, sem="acquire") == 0:
            pass
        before += tl.load(sums + at)  # bug
    tl.store(out + program * 8 + i, before + tl.cumsum(value, 0))


@bug("data-race", floats(3, 4, 16), empty(3, 16), integers(3), tensor="out", grid=(3, 4))
@triton.jit
def split_k_whose_semaphore_is_of_its_block(x, out, semaphore):
    tile, part = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, 16)
    value = tl.load(x + (tile * 4 + part) * 16 + i)
    while tl.atomic_cas(semaphore + tile, part, part, scope="cta") != part:
        pass
    if part > 0:
        value += tl.load(out + tile * 16 + i)  # bug
    tl.store(out + tile * 16 + i, value)
    tl.debug_barrier()
    tl.atomic_xchg(semaphore + tile, part + 1, scope="cta")


@bug("data-race", floats(3, 4, 16), empty(3, 16), integers(3), tensor="out", grid=(3, 4))
@triton.jit
def split_k_that_passes_the_turn_on_before_it_stores(x, out, semaphore):
    tile, part = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, 16)
    value = tl.load(x + (tile * 4 + part) * 16 + i)
    while tl.atomic_cas(semaphore + tile, part, part) != part:
        pass
    if part > 0:
        value += tl.load(out + tile * 16 + i)
    tl.atomic_xchg(semaphore + tile, part + 1)
    tl.store(out + tile * 16 + i, value)  # bug


@bug("data-race", floats(16), floats(16), empty(4), integers(5), empty(1), tensor="groups", grid=(16,))
@triton.jit
def groups_that_are_counted_relaxed(x, parts, groups, done, out):
    group = tl.program_id(0) // 4
    tl.store(parts + tl.program_id(0), tl.load(x + tl.program_id(0)))
    if tl.atomic_add(done + group, 1, sem="acq_rel") == 3:
        tl.store(groups + group, tl.sum(tl.load(parts + group * 4 + tl.arange(0, 4)), 0))
        if tl.atomic_add(done + 4, 1, sem="relaxed") == 3:
            tl.store(out, tl.sum(tl.load(groups + tl.arange(0, 4)), 0))  # bug


@bug("data-race", floats(16), floats(16), integers(1), empty(16), tensor="box", grid=(2,))
@triton.jit
def message_that_a_volatile_load_awaits(x, box, flag, out):
    i = tl.arange(0, 16)
    if tl.program_id(0) == 0:
        tl.store(box + i, tl.load(x + i) * 3)
        tl.debug_barrier()
        tl.atomic_xchg(flag, 1, sem="release")
    else:
        while tl.load(flag, volatile=True) == 0:
            pass
        tl.store(out + i, tl.load(box + i))  # bug


@bug("data-race", integers(8), integers(1), integers(8), tensor="order", grid=(8,))
@triton.jit
def places_that_are_counted_without_atomics(x, count, order):
    place = tl.load(count)
    tl.store(count, place + 0)
    tl.store(order + place, tl.program_id(0))  # bug


@bug("data-race", integers(6, 1), integers(1), empty(1), tensor="total", grid=(6,))
@triton.jit
def ticket_that_nobody_waits_for(x, ticket, total):
    own = tl.atomic_add(ticket, 1)
    if own >= 0:
        tl.store(total, tl.load(total) + tl.load(x + own))  # bug


@bug("data-race", floats(12, 64), floats(64), integers(1), tensor="total", grid=(12,))
@triton.jit
def lock_without_a_barrier_before_its_release(x, total, lock):
    i = tl.arange(0, 64)
    value = tl.load(x + tl.program_id(0) * 64 + i)
    while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
        pass
    tl.store(total + i, tl.load(total + i) + value)  # bug
    tl.atomic_xchg(lock, 0, sem="release")


@bug("data-race", floats(5, 64), floats(5, 64), integers(1), empty(64), tensor="parts", grid=(5,))
@triton.jit
def last_program_without_a_barrier_before_it_counts(x, parts, counter, out):
    i = tl.arange(0, 64)
    tl.store(parts + tl.program_id(0) * 64 + i, tl.load(x + tl.program_id(0) * 64 + i))
    if tl.atomic_add(counter, 1) == 4:
        total = tl.zeros((64,), tl.float32)
        for k in range(5):
            total += tl.load(parts + k * 64 + i)  # bug
        tl.store(out + i, total)
