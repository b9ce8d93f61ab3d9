"""Programs that wait for each other when many before them have ended: one of them runs on the thread of the launch."""

from __future__ import annotations

import numpy as np
import pytest

import bragg.debug
from bragg.debug.faults import KernelFault
from bragg.debug.flow import scheduler
from bragg.debug.flow.turns import Turns

pytest.importorskip("triton")

import triton
import triton.language as tl

BEFORE = scheduler._INTERRUPTED + 20
N = BEFORE + 6


@triton.jit
def waits_for_the_next_kernel(flags, out, first, last):
    pid = tl.program_id(0)
    if pid >= first:
        if pid < last:
            while tl.atomic_add(flags + pid + 1, 0, sem="acquire") == 0:
                pass
        tl.store(out + pid, tl.load(out + pid + 1) + 1)
        tl.debug_barrier()
        tl.atomic_xchg(flags + pid, 1, sem="release")


@triton.jit
def meets_kernel(counter, x, out, first, count):
    pid = tl.program_id(0)
    if pid >= first:
        tl.store(x + pid, pid)
        tl.debug_barrier()
        tl.atomic_add(counter, 1, sem="release")
        while tl.atomic_add(counter, 0, sem="acquire") < count:
            pass
        tl.store(out + pid, tl.load(x + first + (pid + 1) % count))


@triton.jit
def locked_kernel(lock, total):
    while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
        pass
    tl.store(total, tl.load(total) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0, sem="release")


def test_a_program_waits_for_later_ones() -> None:
    out = np.zeros(N + 1, "i4")
    with bragg.debug.check() as report:
        waits_for_the_next_kernel[(N,)](np.zeros(N + 1, "i4"), out, BEFORE, N - 1)
    assert out[BEFORE:].tolist() == [6, 5, 4, 3, 2, 1, 0]
    assert len(report) == 0, report.lines()


def test_programs_meet_at_a_barrier() -> None:
    count = N - BEFORE
    out = np.zeros(N, "i4")
    with bragg.debug.check() as report:
        meets_kernel[(N,)](np.zeros(1, "i4"), np.zeros(N, "i4"), out, BEFORE, count)
    expected = [BEFORE + (pid + 1) % count for pid in range(BEFORE, N)]
    assert (out[BEFORE:].tolist(), len(report)) == (expected, 0), report.lines()


def test_programs_take_one_lock() -> None:
    total = np.zeros(1, "i4")
    with bragg.debug.check() as report:
        locked_kernel[(3 * N,)](np.zeros(1, "i4"), total)
    assert (total[0], len(report), report.programs) == (3 * N, 0, 3 * N), report.lines()


def test_a_program_that_waits_for_nobody_is_a_deadlock() -> None:
    with (
        pytest.raises(KernelFault, match=rf"deadlock: 1 programs wait for each other, among them \({N - 1}, 0, 0\)"),
        bragg.debug.interpret(),
    ):
        waits_for_the_next_kernel[(N,)](np.zeros(N + 1, "i4"), np.zeros(N + 1, "i4"), N - 1, N)


@triton.jit
def meeting(count, n):
    tl.atomic_add(count, 1, sem="release")
    while tl.atomic_add(count, 0, sem="acquire") < n:
        pass


def test_programs_that_wait_for_all_others_look_a_few_times_each(monkeypatch: pytest.MonkeyPatch) -> None:
    n_resumed, resume = 0, Turns.resume

    def counted(one: Turns) -> None:
        nonlocal n_resumed
        n_resumed += 1
        resume(one)

    monkeypatch.setattr(Turns, "resume", counted)
    with bragg.debug.interpret():
        meeting[(500,)](np.zeros(1, "i4"), 500)
    assert n_resumed < 10 * 500
