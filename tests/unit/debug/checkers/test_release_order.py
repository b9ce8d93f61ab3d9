# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
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


@triton.jit
def hands_on(part, flag, out, SET: tl.constexpr, WAIT: tl.constexpr):
    p = tl.program_id(0)
    before = tl.zeros((), tl.int32)
    if p > 0:
        while tl.atomic_add(flag + p - 1, 0, sem=WAIT) == 0:
            pass
        before = tl.load(part + p - 1)
    tl.store(part + p, before + 1)
    tl.atomic_xchg(flag + p, 1, sem=SET)
    tl.store(out + p, before)


@triton.jit
def polls_by_loads(part, flag, out):
    p = tl.program_id(0)
    if p > 0:
        while tl.load(flag + p - 1) == 0:
            pass
    tl.atomic_xchg(flag + p, 1, sem="release")


@triton.jit
def unlocks_by_a_store(total, lock, out):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + 1)
    tl.debug_barrier()
    tl.store(lock, 0)


def hint_of(kernel: Any, **constants: Any) -> str:
    with bragg.debug.check(only=["data-race"]) as report:
        kernel[(4,)](np.zeros(4, "i4"), np.zeros(4, "i4"), np.zeros(4, "i4"), **constants)
    return next(iter(report)).hint


@pytest.mark.parametrize(
    ("kernel", "orders", "fix"),
    [
        (hands_on, ("relaxed", "acquire"), 'give the atomic that sets it sem="release" in place of "relaxed"'),
        (hands_on, ("acquire", "acquire"), 'give the atomic that sets it sem="release"'),
        (hands_on, ("release", "relaxed"), 'give the atomic that waits for it sem="acquire" in place of "relaxed"'),
        (polls_by_loads, (), 'wait for it by tl.atomic_add(flag, 0, sem="acquire"), not by tl.load'),
        (unlocks_by_a_store, (), 'set it by tl.atomic_xchg(flag, value, sem="release"), not by tl.store'),
    ],
)
def test_the_fix_names_the_order_that_an_atomic_lacks(kernel: Any, orders: tuple[str, ...], fix: str) -> None:
    constants = dict(zip(("SET", "WAIT"), orders, strict=False))
    known = f"If a flag or a lock orders these programs, {fix}; else let each element belong to one program"
    assert hint_of(kernel, **constants) == known
