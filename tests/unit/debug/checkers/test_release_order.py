"""Races whose fix is the order of two lines: what is released is done after the atomic that releases it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug


@triton.jit
def raises_the_flag_first(part, flag, out):
    p = tl.program_id(0)
    before = tl.zeros((), tl.int32)
    if p > 0:
        while tl.atomic_add(flag + p - 1, 0) == 0:
            pass
        before = tl.load(part + p - 1)
    tl.atomic_xchg(flag + p, 1)
    tl.store(part + p, before + 1)
    tl.store(out + p, before)


@triton.jit
def counts_first(part, count, out):
    p = tl.program_id(0)
    arrived = tl.atomic_add(count, 1)
    tl.store(part + p, p + 1)
    if arrived == 3:
        tl.store(out, tl.sum(tl.load(part + tl.arange(0, 4)), 0))


@triton.jit
def unlocks_first(total, lock, out):
    p = tl.program_id(0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    old = tl.load(total)
    tl.atomic_xchg(lock, 0)
    tl.store(total, old + p)
    tl.store(out + p, old)


@triton.jit
def frees_before_it_reads(slot, free, out):
    p = tl.program_id(0)
    if p == 0:
        tl.atomic_xchg(free, 1)
        tl.store(out, tl.load(slot))
    else:
        while tl.atomic_add(free, 0) == 0:
            pass
        tl.store(slot, 7)


@triton.jit
def lacks_the_second_barrier(x, count, out):
    p = tl.program_id(0)
    tl.atomic_add(count, 1)
    while tl.atomic_add(count, 0) < 4:
        pass
    tl.store(x + p, p)
    tl.store(out + p, tl.load(x + (p + 1) % 4))


@triton.jit
def takes_tickets(x, count, out):
    ticket = tl.atomic_add(count, 1)
    slot = x + ticket % 2
    tl.store(slot, tl.load(slot) + ticket)


@triton.jit
def counts_beside(x, count, out):
    tl.atomic_add(count, 1)
    tl.store(x, tl.load(x) + tl.program_id(0))


@triton.jit
def releases_in_the_turn_before(x, flag, out):
    p = tl.program_id(0)
    if p == 0:
        for i in range(3):
            tl.store(x, i)
            tl.atomic_xchg(flag, i + 1)
    else:
        while tl.atomic_add(flag, 0) == 0:
            pass
        tl.store(out + p, tl.load(x))


def race_of(kernel: Any) -> Any:
    with bragg.debug.check(only=["data-race"]) as report:
        kernel[(4,)](np.zeros(4, "i4"), np.zeros(4, "i4"), np.zeros(4, "i4"))
    return next(iter(report))


@pytest.mark.parametrize(
    ("kernel", "late", "atomic"),
    [
        (raises_the_flag_first, 9, 8),
        (counts_first, 4, 3),
        (unlocks_first, 7, 6),
        (frees_before_it_reads, 5, 4),
    ],
    ids=["flag", "counter", "lock", "slot"],
)
def test_the_fix_names_the_order_of_what_is_released_too_early(kernel: Any, late: int, atomic: int) -> None:
    race, first = race_of(kernel), kernel.fn.__code__.co_firstlineno
    late, atomic = first + late, first + atomic
    assert race.hint == f"Move line {late} before the atomic in line {atomic}, with tl.debug_barrier() between"
    assert race.other["why"] == f"the atomic in line {atomic} releases it before line {late} has done it"


@pytest.mark.parametrize(
    "kernel",
    [lacks_the_second_barrier, takes_tickets, counts_beside, releases_in_the_turn_before],
    ids=lambda k: k.__name__,
)
def test_other_races_keep_their_fix(kernel: Any) -> None:
    assert race_of(kernel).hint == "Let each element belong to one program, or use tl.atomic_add and the like"
