"""Correct kernels whose programs order their accesses by atomics: locks, tickets, semaphores, barriers, queues."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.kernels.correct.table import correct, normal


def zeros(*shape: int, dtype: str = "i4"):
    return np.zeros(shape, dtype)


@triton.jit
def lock_kernel(lock, total, x, B: tl.constexpr):
    i = tl.arange(0, B)
    while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
        pass
    tl.store(total + i, tl.load(total + i) + tl.load(x + tl.program_id(0) * B + i))
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0, sem="release")


@correct
def sum_under_a_lock():
    x, total = normal(12, 16), zeros(16, dtype="f4")
    lock_kernel[(12,)](zeros(1), total, x, B=16)
    return [(total, x.sum(0))]


@triton.jit
def ticket_lock_kernel(ticket, serving, total, count):
    own = tl.atomic_add(ticket, 1, sem="relaxed")
    while tl.atomic_add(serving, 0, sem="acquire") != own:
        pass
    tl.store(total, tl.load(total) * 2 + 1)
    tl.store(count + tl.program_id(0), own)
    tl.debug_barrier()
    tl.atomic_add(serving, 1, sem="release")


@correct
def ticket_lock():
    total, count = zeros(1), zeros(6)
    ticket_lock_kernel[(6,)](zeros(1), zeros(1), total, count)
    return [(total, [63]), (np.sort(count), range(6))]


@triton.jit
def serial_split_kernel(x, out, semaphore, K: tl.constexpr, B: tl.constexpr):
    tile, part = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, B)
    value = tl.load(x + (tile * K + part) * B + i)
    while tl.atomic_cas(semaphore + tile, part, part) != part:
        pass
    if part > 0:
        value += tl.load(out + tile * B + i)
    tl.store(out + tile * B + i, value)
    tl.debug_barrier()
    tl.atomic_xchg(semaphore + tile, part + 1)


@correct
def parts_added_in_turn_by_a_semaphore():
    x, out = normal(3, 4, 16), np.empty((3, 16), "f4")
    serial_split_kernel[(3, 4)](x, out, zeros(3), K=4, B=16)
    return [(out, x.sum(1))]


@triton.jit
def split_sum_kernel(x, out, counter, result, K: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(out + i, tl.load(x + tl.program_id(0) * B + i), sem="relaxed")
    tl.debug_barrier()
    if tl.atomic_add(counter, 1) == K - 1:
        tl.store(result + i, tl.load(out + i) * 0.5)


@correct
def parts_added_by_atomics_and_scaled_by_the_last():
    x, result = normal(5, 16), np.empty(16, "f4")
    split_sum_kernel[(5,)](x, zeros(16, dtype="f4"), zeros(1), result, K=5, B=16)
    return [(result, x.sum(0) / 2)]


@triton.jit
def masked_last_kernel(x, part, counter, out, K: tl.constexpr):
    program = tl.program_id(0)
    tl.store(part + program, tl.load(x + program) + 1)
    is_last = tl.atomic_add(counter, 1) == K - 1
    i = tl.arange(0, K)
    total = tl.sum(tl.load(part + i, mask=is_last & (i < K), other=0.0), 0)
    tl.store(out, total, mask=is_last)


@correct
def the_last_program_by_a_mask():
    x, out = normal(8), np.empty(1, "f4")
    masked_last_kernel[(8,)](x, np.empty(8, "f4"), zeros(1), out, K=8)
    return [(out, [x.sum() + 8])]


@triton.jit
def stream_kernel(x, part, flags, out, K: tl.constexpr, B: tl.constexpr):
    tile, own = tl.program_id(0) // K, tl.program_id(0) % K
    i = tl.arange(0, B)
    value = tl.load(x + tl.program_id(0) * B + i)
    if own > 0:
        tl.store(part + tl.program_id(0) * B + i, value)
        tl.debug_barrier()
        tl.atomic_xchg(flags + tl.program_id(0), 1, sem="release")
    else:
        for other in range(1, K):
            while tl.atomic_cas(flags + tile * K + other, 1, 1, sem="acquire") != 1:
                pass
            value += tl.load(part + (tile * K + other) * B + i)
        tl.store(out + tile * B + i, value)


@correct
def stream_k_whose_first_program_collects():
    x, out = normal(2, 4, 16), np.empty((2, 16), "f4")
    stream_kernel[(8,)](x, np.empty((8, 16), "f4"), zeros(8), out, K=4, B=16)
    return [(out, x.sum(1))]


@triton.jit
def decoupled_kernel(x, out, states, sums, totals, B: tl.constexpr):
    program = tl.program_id(0)
    value = tl.load(x + program * B + tl.arange(0, B))
    own = tl.sum(value, 0)
    tl.store(sums + program, own)
    tl.debug_barrier()
    tl.atomic_xchg(states + program, 1, sem="release")
    before = 0.0
    at = program - 1
    while at >= 0:
        state = tl.atomic_add(states + at, 0, sem="acquire")
        if state == 2:
            before += tl.load(totals + at)
            at = -1
        elif state == 1:
            before += tl.load(sums + at)
            at -= 1
    tl.store(totals + program, before + own)
    tl.debug_barrier()
    tl.atomic_xchg(states + program, 2, sem="release")
    tl.store(out + program * B + tl.arange(0, B), before + tl.cumsum(value, 0))


@correct
def decoupled_look_back():
    x, out = normal(64), np.empty(64, "f4")
    decoupled_kernel[(8,)](x, out, zeros(8), np.empty(8, "f4"), np.empty(8, "f4"), B=8)
    return [(out, x.cumsum())]


@triton.jit
def barrier_kernel(x, middle, out, counter, N: tl.constexpr):
    program = tl.program_id(0)
    tl.store(middle + program, tl.load(x + program) * 2)
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="release")
    while tl.atomic_add(counter, 0, sem="acquire") < N:
        pass
    tl.store(out + program, tl.load(middle + (program + 1) % N))


@correct
def barrier_of_all_programs():
    x, out = normal(6), np.empty(6, "f4")
    barrier_kernel[(6,)](x, np.empty(6, "f4"), out, zeros(1), N=6)
    return [(out, np.roll(x, -1) * 2)]


@triton.jit
def steps_kernel(x, counter, N: tl.constexpr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    for step in range(STEPS):
        left = tl.load(x + step * N + (program + N - 1) % N)
        tl.store(x + (step + 1) * N + program, left + tl.load(x + step * N + program))
        tl.debug_barrier()
        tl.atomic_add(counter, 1)
        while tl.atomic_add(counter, 0) < (step + 1) * N:
            pass


@correct
def barriers_between_steps():
    x = zeros(4, 5)
    x[0] = range(5)
    steps_kernel[(5,)](x, zeros(1), N=5, STEPS=3)
    expected = np.arange(5)
    for _ in range(3):
        expected = expected + np.roll(expected, 1)
    return [(x[3], expected)]


@triton.jit
def queue_kernel(x, slots, flags, out):
    program, own = tl.program_id(0), tl.program_id(0) // 2
    if program % 2 == 0:
        tl.store(slots + own, tl.load(x + own) * 3)
        tl.debug_barrier()
        tl.atomic_xchg(flags + own, 1, sem="release")
    else:
        while tl.atomic_cas(flags + own, 1, 2, sem="acquire") != 1:
            pass
        tl.store(out + own, tl.load(slots + own) + 1)


@correct
def producers_and_consumers():
    x, out = normal(4), np.empty(4, "f4")
    queue_kernel[(8,)](x, np.empty(4, "f4"), zeros(4), out)
    return [(out, x * 3 + 1)]


@triton.jit
def once_kernel(state, table, out):
    program = tl.program_id(0)
    if tl.atomic_cas(state, 0, 1) == 0:
        tl.store(table + tl.arange(0, 8), tl.arange(0, 8) * 7)
        tl.debug_barrier()
        tl.atomic_xchg(state, 2)
    while tl.atomic_add(state, 0) != 2:
        pass
    tl.store(out + program, tl.load(table + program))


@correct
def table_that_the_first_program_makes():
    out = zeros(8)
    once_kernel[(8,)](zeros(1), np.empty(8, "i4"), out)
    return [(out, np.arange(8) * 7)]


@triton.jit
def sequence_kernel(x, counter, out, N: tl.constexpr):
    program = tl.program_id(0)
    if program == 0:
        tl.store(x, 5)
        tl.debug_barrier()
        tl.atomic_add(counter, 1, sem="release")
    elif program < N - 1:
        tl.atomic_add(counter, 1, sem="relaxed")
    else:
        while tl.atomic_add(counter, 0, sem="acquire") < N - 1:
            pass
        tl.store(out, tl.load(x))


@correct
def release_that_relaxed_atomics_pass_on():
    out = zeros(1)
    sequence_kernel[(4,)](zeros(1), zeros(1), out, N=4)
    return [(out, [5])]


@triton.jit
def slots_kernel(x, out, counter, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + i, mask=i < n, other=-1)
    keep = value >= 0
    first = tl.atomic_add(counter, tl.sum(keep.to(tl.int32), 0), sem="relaxed")
    tl.store(out + first + tl.cumsum(keep.to(tl.int32), 0) - 1, value, mask=keep)


@correct
def slots_that_a_counter_hands_out():
    x = np.random.default_rng(0).integers(-5, 5, 50).astype("i4")
    out, counter = zeros((x >= 0).sum()), zeros(1)
    slots_kernel[(4,)](x, out, counter, 50, B=16)
    return [(np.sort(out), np.sort(x[x >= 0])), (counter, [len(out)])]


@triton.jit
def stack_kernel(head, following, values, seen):
    own = tl.program_id(0) + 1
    tl.store(values + own, own * own)
    top = tl.atomic_add(head, 0, sem="acquire")
    is_in = False
    while not is_in:
        tl.store(following + own, top)
        found = tl.atomic_cas(head, top, own)
        is_in = found == top
        top = found
    if top > 0:
        tl.store(seen + own, tl.load(values + top))


@correct
def stack_that_programs_push_on():
    following, seen = zeros(7), zeros(7)
    head = zeros(1)
    stack_kernel[(6,)](head, following, zeros(7), seen)
    order, at = [], int(head[0])
    while at:
        order.append(at)
        at = int(following[at])
    return [(sorted(order), range(1, 7)), (seen, following**2)]


@triton.jit
def tiles_kernel(x, next_tile, out, n, B: tl.constexpr):
    tile = tl.atomic_add(next_tile, 1, sem="relaxed")
    while tile < n:
        i = tile * B + tl.arange(0, B)
        tl.store(out + i, tl.load(x + i) + tile)
        tile = tl.atomic_add(next_tile, 1, sem="relaxed")


@correct
def tiles_that_programs_take():
    x, out = normal(10, 8), np.empty((10, 8), "f4")
    tiles_kernel[(3,)](x, zeros(1), out, 10, B=8)
    return [(out, x + np.arange(10)[:, None])]


@triton.jit
def wavefront_kernel(x, done, N: tl.constexpr):
    row = tl.program_id(0)
    for column in range(N):
        if row > 0:
            while tl.atomic_add(done + row - 1, 0, sem="acquire") <= column:
                pass
        above = tl.load(x + row * (N + 1) + column + 1)
        left = tl.load(x + (row + 1) * (N + 1) + column)
        tl.store(x + (row + 1) * (N + 1) + column + 1, above + left)
        tl.debug_barrier()
        tl.atomic_add(done + row, 1, sem="release")


@correct
def wavefront_of_rows():
    x = zeros(5, 5)
    x[0], x[:, 0] = 1, 1
    wavefront_kernel[(4,)](x, zeros(4), N=4)
    expected = np.ones((5, 5), "i4")
    for row in range(1, 5):
        for column in range(1, 5):
            expected[row, column] = expected[row - 1, column] + expected[row, column - 1]
    return [(x, expected)]


@triton.jit
def permits_kernel(permits, inside, most):
    while tl.atomic_add(permits, -1) <= 0:
        tl.atomic_add(permits, 1)
    count = tl.atomic_add(inside, 1) + 1
    tl.atomic_max(most, count)
    tl.atomic_add(inside, -1)
    tl.atomic_add(permits, 1)


@correct
def semaphore_with_two_permits():
    most, permits = zeros(1), np.full(1, 2, "i4")
    permits_kernel[(8,)](permits, zeros(1), most)
    return [(most <= 2, [1]), (permits, [2])]


@triton.jit
def resident_kernel(counter, out, programs):
    tl.atomic_add(counter, 1)
    while tl.atomic_add(counter, 0) < programs:
        pass
    tl.store(out + tl.program_id(0), 1)


@correct
def barrier_of_as_many_programs_as_fit():
    out = np.zeros(264, "i4")
    resident_kernel[(264,)](np.zeros(1, "i4"), out, 264, num_warps=32)
    return [(out, [1] * 264)]


@correct
def lock_of_more_programs_than_fit():
    """Programs that wait for earlier ones alone need not all be there at once."""
    out = np.zeros(300, "i4")
    ordered_kernel[(300,)](np.zeros(1, "i4"), out, num_warps=32)
    return [(out, np.arange(300))]


@triton.jit
def ordered_kernel(turn, out):
    while tl.atomic_add(turn, 0) < tl.program_id(0):
        pass
    tl.store(out + tl.program_id(0), tl.atomic_add(turn, 1))
