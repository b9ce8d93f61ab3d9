# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Blocks that are judged as a whole: the same races as where each lane is looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

from bragg.debug.checkers.sharing.whole_blocks import WholeBlocks
from bragg.debug.session import CheckedSession, checking, chosen_checkers


@triton.jit
def step(x, y, flags, at, GIVE: tl.constexpr, which: tl.constexpr):
    i = tl.arange(0, 8)
    if which == 0:
        tl.store(x + at + i, tl.load(x + at + i) + 1)
    elif which == 1:
        tl.store(y + at + i, tl.load(x + i))
    elif which == 2:
        tl.atomic_add(x + at, 1, sem="relaxed")
    elif which == 3:
        tl.store(flags + tl.program_id(0), tl.load(x + 4))
    elif which == 4:
        tl.atomic_add(flags, 1, sem=GIVE)
    elif which == 5:
        tl.load(flags, volatile=True)
    else:
        tl.store(x + at + i, tl.load(y + i), mask=i < 5)


@triton.jit
def steps_under_a_lock(
    lock, x, y, flags, TAKE: tl.constexpr, GIVE: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr
):
    while tl.atomic_cas(lock, 0, 1, sem=TAKE) == 1:
        pass
    for n in tl.static_range(4):
        step(x, y, flags, (SECOND * n) % 3 * 4, GIVE, (FIRST * (n + 1) + SECOND) % 7)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0, sem=GIVE)


def races(seed: int) -> list[tuple[Any, ...]]:
    random = np.random.default_rng(seed)
    lock, x, y, flags = (np.zeros(n, np.int32) for n in (1, 16, 16, 8))
    orders = [["acq_rel", "acquire", "relaxed"], ["acq_rel", "release", "relaxed"]]
    take, give = (str(random.choice(order, p=[0.6, 0.2, 0.2])) for order in orders)
    first, second = (int(number) for number in random.integers(1, 7, 2))
    session = CheckedSession(chosen_checkers(only=["data-race"]))
    with checking(session):
        steps_under_a_lock[(6,)](lock, x, y, flags, TAKE=take, GIVE=give, FIRST=first, SECOND=second)
    return sorted(
        (one.line, one.message, one.severity, sorted(one.programs), one.lanes, sorted(one.positions), str(one.other))
        for one in session.report
    )


def test_races_are_those_of_single_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    as_a_whole = [races(seed) for seed in range(8)]

    def look_at_each_lane(blocks: WholeBlocks, cells: Any, *_: Any) -> bool:
        cells.settle()
        return False

    monkeypatch.setattr(WholeBlocks, "see", look_at_each_lane)
    assert [races(seed) for seed in range(8)] == as_a_whole
    assert {bool(found) for found in as_a_whole} == {True, False}
