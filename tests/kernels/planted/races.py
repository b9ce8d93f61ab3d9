"""Planted races between programs."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.kernels.planted.table import bug, floats, integers


@bug("data-race", floats(1024), 1000, tensor="x", programs=range(4), B=256)
@triton.jit
def blocks_that_overlap(x, n, B: tl.constexpr):
    offsets = tl.program_id(0) * (B - 1) + tl.arange(0, B)
    tl.store(x + offsets, offsets.to(tl.float32) * tl.program_id(0))  # bug


@bug("data-race", floats(1024), 1024, tensor="x", programs=range(4), B=256)
@triton.jit
def shift_in_place(x, n, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    values = tl.load(x + offsets + 1, mask=offsets + 1 < n, other=0.0)
    tl.store(x + offsets, values + 1)  # bug


@bug("data-race", floats(1), floats(4), tensor="total")
@triton.jit
def sum_without_atomic(total, x):
    tl.store(total, tl.load(total) + tl.load(x + tl.program_id(0)))  # bug


@bug("data-race", integers(1), integers(4), tensor="counter")
@triton.jit
def plain_read_of_a_counter(counter, out):
    tl.atomic_add(counter, 1)
    tl.store(out + tl.program_id(0), tl.load(counter))  # bug


@bug("data-race", integers(1), tensor="counter")
@triton.jit
def plain_write_of_a_counter(counter):
    tl.atomic_add(counter, 1)
    tl.store(counter, tl.program_id(0) + 10)  # bug


@bug("data-race", floats(8, 64), 63, tensor="x", programs=range(8), grid=(8,), B=64)
@triton.jit
def wrong_row_stride(x, stride, B: tl.constexpr):
    columns = tl.arange(0, B)
    row = x + tl.program_id(0) * stride
    tl.store(row + columns, tl.program_id(0).to(tl.float32) + columns)  # bug


@bug("data-race", integers(1), floats(64), tensor="part", grid=(64,))
@triton.jit
def count_relaxed_then_read(counter, part):
    pid = tl.program_id(0)
    tl.store(part + pid, pid.to(tl.float32))
    if tl.atomic_add(counter, 1, sem="relaxed") == 63:
        tl.load(part + tl.arange(0, 64))  # bug


@bug("data-race", floats(16, 16), tensor="x", grid=(2, 2))
@triton.jit
def transposition_in_place(x):
    i, j = tl.program_id(0) * 8 + tl.arange(0, 8), tl.program_id(1) * 8 + tl.arange(0, 8)
    tile = tl.load(x + i[:, None] * 16 + j[None, :]) + tl.program_id(0)
    tl.store(x + j[:, None] * 16 + i[None, :], tl.trans(tile))  # bug


@bug("data-race", floats(32), floats(4, 32), tensor="out", programs=range(4))
@triton.jit
def partial_sums_without_atomic(out, x):
    columns = tl.arange(0, 32)
    part = tl.load(x + tl.program_id(0) * 32 + columns) * tl.program_id(0)
    tl.store(out + columns, part)  # bug


@bug("data-race", lambda: np.array([0, 1, 1, 2], "i4"), floats(4), tensor="out", programs={1, 2})
@triton.jit
def scatter_to_equal_indices(index, out):
    row = tl.load(index + tl.program_id(0))
    tl.store(out + row, tl.program_id(0).to(tl.float32))  # bug


@bug("data-race", floats(64), floats(4), tensor="x")
@triton.jit
def reads_what_the_neighbour_writes(x, out):
    pid = tl.program_id(0)
    tl.store(x + pid * 16 + tl.arange(0, 16), pid.to(tl.float32))
    neighbour = (pid + 1) % 4
    total = tl.sum(tl.load(x + neighbour * 16 + tl.arange(0, 16)), 0)  # bug
    tl.store(out + pid, total)


@bug("data-race", floats(2), integers(2), floats(1), tensor="out")
@triton.jit
def lock_of_another_element(x, lock, out):
    pid = tl.program_id(0) % 2
    while tl.atomic_cas(lock + pid, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + tl.load(x + pid))  # bug
    tl.debug_barrier()
    tl.atomic_xchg(lock + pid, 0)


@bug("data-race", floats(4), integers(4), floats(4), tensor="sums")
@triton.jit
def flag_that_is_raised_too_early(x, flags, sums):
    pid = tl.program_id(0)
    tl.atomic_xchg(flags + pid, 1)
    tl.store(sums + pid, tl.load(x + pid) * 2)
    if pid > 0:
        while tl.atomic_add(flags + pid - 1, 0) == 0:
            pass
        tl.load(sums + pid - 1)  # bug


@bug("data-race", floats(16), floats(8, 16), floats(8), tensor="dw", grid=(8,))
@triton.jit
def gradient_of_a_shared_weight(w, x, dw):
    columns = tl.arange(0, 16)
    row = tl.program_id(0)
    value = tl.load(x + row * 16 + columns) * (row + 1)
    place = columns % 8
    tl.store(dw + place, tl.load(dw + place) + value)  # bug


@bug("data-race", floats(8), tensor="x")
@triton.jit
def bytes_that_overlap(x):
    place = tl.program_id(0) * 3 + tl.arange(0, 4)
    target = x.to(tl.pointer_type(tl.int8))
    tl.store(target + place, (place + tl.program_id(0)).to(tl.int8))  # bug


@bug("data-race", floats(64), floats(1), tensor="out")
@triton.jit
def sums_that_happen_to_be_equal(x, out):
    total = tl.sum(tl.load(x + tl.program_id(0) * 16 + tl.arange(0, 16)), 0)
    tl.store(out, total)  # bug


@bug("data-race", floats(4), floats(1), tensor="out")
@triton.jit
def sum_that_one_program_resets(x, out):
    if tl.program_id(0) == 0:
        tl.store(out, 0.0)
    tl.atomic_add(out, tl.load(x + tl.program_id(0)))  # bug


@bug("data-race", integers(1), tensor="counter")
@triton.jit
def counter_that_one_program_resets(counter):
    if tl.program_id(0) == 0:
        tl.store(counter, 0)
    tl.atomic_add(counter, 1)  # bug


@bug(
    "data-race",
    lambda: np.array([0, 1, 1, 3] * 4, "i4"),
    lambda: np.arange(16, dtype="f4"),
    floats(4),
    tensor="out",
    grid=(1,),
)
@triton.jit
def lanes_that_scatter_to_one_element(index, x, out):
    i = tl.arange(0, 16)
    tl.store(out + tl.load(index + i), tl.load(x + i))  # bug


@bug("data-race", lambda: np.arange(128, dtype="f4"), floats(8, 16), tensor="out", grid=(1,), stride=12)
@triton.jit
def rows_that_overlap(x, out, stride):
    i, j = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    tl.store(out + i * stride + j, tl.load(x + i * 16 + j))  # bug


@bug("data-race", lambda: np.arange(512, dtype="f4"), floats(4, 8, 16), tensor="out", grid=(4,), programs=None)
@triton.jit
def a_product_that_keeps_one_row(x, out):
    i, j = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    values = tl.load(x + tl.program_id(0) * 128 + i * 16 + j)
    tl.store(out + tl.program_id(0) * 128 + i * 0 + j, values, mask=j < 12)  # bug


@bug("data-race", lambda: np.arange(64, dtype="i4") % 4, integers(4), tensor="counts", grid=(1,))
@triton.jit
def lanes_that_count_without_atomics(keys, counts):
    place = counts + tl.load(keys + tl.arange(0, 64))
    count = tl.load(place)
    tl.store(place, count + 1)  # bug


@bug("data-race", lambda: np.zeros(4, "i4"), floats(4, 16), floats(24, 16), grid=(24,), tensor="sums", programs=None)
@triton.jit
def lock_that_lets_everybody_in(locks, sums, x):
    row, i = tl.program_id(0), tl.arange(0, 16)
    lock, partial = locks + row % 4, sums + row % 4 * 16 + i
    while tl.atomic_cas(lock, 0, 1) == 2:
        pass
    total = tl.load(partial) + tl.load(x + row * 16 + i)  # bug
    tl.store(partial, total)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@bug("data-race", integers(8), integers(20, 8), tensor="totals", grid=(5,), B=8)
@triton.jit
def totals_that_one_program_clears(totals, x, B: tl.constexpr):
    program, i = tl.program_id(0), tl.arange(0, B)
    if program == 0:
        tl.store(totals + i, 0)
    tl.atomic_add(totals + i, tl.load(x + program * B + i))  # bug


@bug("data-race", integers(4), integers(1), integers(4), tensor="x")
@triton.jit
def counts_and_does_not_wait(x, counter, out):
    program = tl.program_id(0)
    tl.store(x + program, program)
    tl.atomic_add(counter, 1)
    tl.store(out + program, tl.load(x + (program + 3) % 4))  # bug


@bug("data-race", integers(1), integers(1), tensor="total")
@triton.jit
def lock_of_a_narrow_scope(lock, total):
    while tl.atomic_cas(lock, 0, 1, scope="cta") == 1:
        pass
    tl.store(total, tl.load(total) + 1)  # bug
    tl.atomic_xchg(lock, 0, scope="cta")


@bug("data-race", integers(1), integers(4), tensor="counter", programs=range(4))
@triton.jit
def ticket_of_a_narrow_scope(counter, out):
    ticket = tl.atomic_add(counter, 1, scope="cta")  # bug
    tl.store(out + tl.program_id(0), ticket)


@bug("data-race", integers(1), integers(1), tensor="total")
@triton.jit
def lock_that_acquires_nothing(lock, total):
    while tl.atomic_cas(lock, 0, 1, sem="relaxed") == 1:
        pass
    tl.store(total, tl.load(total) + 1)  # bug
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0, sem="release")


@bug("data-race", integers(1), integers(1), tensor="total")
@triton.jit
def lock_that_a_plain_store_opens(lock, total):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + 1)  # bug
    tl.debug_barrier()
    tl.store(lock, 0)


@bug("data-race", integers(1), integers(1), integers(1), tensor="total")
@triton.jit
def ticket_that_is_served_too_early(ticket, serving, total):
    own = tl.atomic_add(ticket, 1)
    while tl.atomic_add(serving, 0) != own:
        pass
    tl.atomic_add(serving, 1)
    tl.store(total, tl.load(total) + 1)  # bug


@bug("data-race", integers(4), integers(1), integers(4), tensor="x")
@triton.jit
def barrier_of_relaxed_atomics(x, counter, out):
    program = tl.program_id(0)
    tl.store(x + program, program)
    tl.atomic_add(counter, 1, sem="relaxed")
    while tl.atomic_add(counter, 0, sem="relaxed") < 4:
        pass
    tl.store(out + program, tl.load(x + (program + 3) % 4))  # bug


@bug("data-race", integers(8), integers(1), integers(4), tensor="x")
@triton.jit
def barrier_before_the_last_store(x, counter, out):
    program = tl.program_id(0)
    tl.atomic_add(counter, 1)
    tl.store(x + program, program)
    while tl.atomic_add(counter, 0) < 4:
        pass
    tl.store(out + program, tl.load(x + (program + 3) % 4))  # bug


@bug("data-race", floats(3), integers(1), floats(1), tensor="x", grid=(2,))
@triton.jit
def waits_for_the_part_before(x, ready, out):
    if tl.program_id(0) == 0:
        for part in range(3):
            tl.store(x + part, 2.0 + part)
            tl.atomic_xchg(ready, part + 1, sem="release")
    else:
        while tl.atomic_add(ready, 0, sem="acquire") < 2:
            pass
        tl.store(out, tl.load(x + 1) + tl.load(x + 2))  # bug


@bug("data-race", floats(6), integers(1), tensor="x", grid=(6,), N=6, STEPS=3)
@triton.jit
def steps_in_place_with_one_wait(x, counter, N: tl.constexpr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    for step in range(STEPS):
        total = tl.load(x + program) + tl.load(x + (program + 1) % N)
        tl.atomic_add(counter, 1, sem="acq_rel")
        while tl.atomic_add(counter, 0, sem="acquire") < (step + 1) * N:
            pass
        tl.store(x + program, total)  # bug


@bug("data-race", floats(3), integers(1), floats(1), tensor="x", grid=(2,))
@triton.jit
def polls_for_any_part_but_the_first(x, ready, out):
    if tl.program_id(0) == 0:
        for part in range(3):
            tl.store(x + part, 2.0 + part)
            tl.atomic_xchg(ready, part + 1, sem="release")
    else:
        seen = tl.atomic_add(ready, 0, sem="acquire")
        while seen <= 1:
            seen = tl.atomic_add(ready, 0, sem="acquire")
        tl.store(out, tl.load(x + 2))  # bug


@bug("data-race", floats(1), floats(4), integers(1), tensor="out")
@triton.jit
def first_program_initialises_late(out, x, ticket):
    program = tl.program_id(0)
    if tl.atomic_add(ticket, 1) == 0:
        tl.store(out, 0.0)
    tl.atomic_add(out, tl.load(x + program))  # bug


@bug("residency", integers(1), integers(300), 300, grid=(300,), num_warps=32)
@triton.jit
def barrier_of_more_programs_than_fit(counter, out, programs):
    tl.atomic_add(counter, 1)
    while tl.atomic_add(counter, 0) < programs:  # bug
        pass
    tl.store(out + tl.program_id(0), 1)


@bug("data-race", floats(4, 16), floats(16), integers(1), floats(16), tensor="out", grid=(4,), programs=None)
@triton.jit
def sum_that_the_last_program_reads_too_early(x, out, counter, result):
    i = tl.arange(0, 16)
    tl.atomic_add(out + i, tl.load(x + tl.program_id(0) * 16 + i), sem="relaxed")
    tl.debug_barrier()
    if tl.atomic_add(counter, 1, sem="relaxed") == 3:
        tl.store(result + i, tl.load(out + i))  # bug


@bug("data-race", floats(4, 64), floats(64), integers(1), floats(64), tensor="out", grid=(4,), programs=None)
@triton.jit
def sum_whose_threads_do_not_wait_before_it_is_counted(x, out, counter, result):
    i = tl.arange(0, 64)
    tl.atomic_add(out + i, tl.load(x + tl.program_id(0) * 64 + i), sem="relaxed")
    if tl.atomic_add(counter, 1) == 3:
        tl.store(result + i, tl.load(out + i))  # bug
