from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.faults import KernelFault
from bragg.debug.host.patience import LaunchTooLong, Patience
from bragg.debug.session import CheckedSession, chosen_checkers
from bragg.debug.state import Listeners


@triton.jit
def endless(out):
    number = 0
    while number >= 0:
        number = number * 1
    tl.store(out, number)


@triton.jit
def one_store(out):
    tl.store(out + tl.program_id(0) % 8, 1.0)


@triton.jit
def row(x, out, n, stride, block: tl.constexpr):
    i = tl.arange(0, block)
    x = x + tl.program_id(0) * stride
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + i, mask=i < n, other=0.0)))


@triton.jit
def locked(lock):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.atomic_xchg(lock, 0)


@triton.jit
def calls_itself(out):
    calls_itself(out)


class Clock:
    """A second for each look at it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 1
        return self.now_s


def run(kernel: Any, grid: tuple[int, ...], argument: Any, limit_s: float | None) -> tuple[CheckedSession, list[str]]:
    said: list[str] = []
    session = CheckedSession(chosen_checkers(), patience=Patience(limit_s, said.append, Clock()))
    try:
        session.run(kernel, grid, (argument,), {})
    except LaunchTooLong as error:
        said.append(error.message)
    return session, said


def test_launch_that_does_not_end_says_where_it_is_and_ends_at_the_limit() -> None:
    session, said = run(endless, (3,), np.zeros(1, "i4"), 45)
    line = endless.fn.__code__.co_firstlineno
    name = f"kernel endless ({__file__}:{line})"
    place, done = f"at line {line + 3}", "0 of 3 programs are done"
    assert [text.partition(". Ctrl-C")[0] for text in said] == [
        *(f"{name} has run for {seconds} s and is {place}: {done}" for seconds in (11, 21, 41)),
        f"{name} took longer than --limit 45 s and was {place}: {done}",
    ]
    assert said[0].endswith(
        "Ctrl-C ends the check and shows what was found; --limit SECONDS ends every launch after that time, and "
        "--program X,Y,Z executes one program alone"
    )
    assert session.report.programs == 0


def test_grid_of_a_thousand_million_programs_takes_no_memory_and_says_how_long_it_takes() -> None:
    session, said = run(one_store, (10**9,), np.zeros(8, "f4"), 14.5)
    assert "of 1,000,000,000 programs are done, the others take about" in said[0]
    assert said[0].partition(" more.")[0].split()[-1] in ("days", "hours", "minutes")
    assert 0 < session.report.programs < 10**9


def test_programs_that_take_turns_are_counted() -> None:
    _, said = run(locked, (64,), np.zeros(1, "i4"), None)
    assert "of 64 programs are done" in said[0]


def test_recursion_is_a_finding_of_one_kernel() -> None:
    session = CheckedSession(chosen_checkers())
    with pytest.raises(KernelFault, match="functions of the kernel call each other without end") as caught:
        session.run(calls_itself, (1,), (np.zeros(1, "f4"),), {})
    assert caught.value.hint == "Triton does not compile recursion: write a loop"
    assert caught.value.line == calls_itself.fn.__code__.co_firstlineno + 2
    assert len(session.report) == 1


def test_a_parameter_that_is_moved_along_is_no_recursion() -> None:
    out = np.zeros(3, "f4")
    session = CheckedSession(chosen_checkers())
    session.run(row, (3,), (np.ones((3, 60), "f4"), out, 60, 60), {"block": 64})
    assert (len(session.report), out.tolist()) == (0, [60.0, 60.0, 60.0])
    session.run(row, (3,), (np.ones((3, 60), "f4"), out, 61, 60), {"block": 64})
    assert "out-of-bounds" in {finding.rule for finding in session.report}


def test_recursion_of_what_executes_a_kernel_is_no_fault_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def explain(*_: object) -> None:
        raise RecursionError

    session = CheckedSession(chosen_checkers())
    monkeypatch.setattr("bragg.debug.memory.access.Access.__init__", explain)
    with pytest.raises(RecursionError):
        session.run(one_store, (1,), (np.zeros(8, "f4"),), {})


def test_short_launch_says_nothing() -> None:
    session, said = run(one_store, (4,), np.zeros(8, "f4"), 5)
    assert (said, session.report.programs) == ([], 4)


def test_a_launch_shows_how_far_it_is_and_nothing_when_it_has_ended() -> None:
    class Shown:
        """Everything that was shown, and how often it ended."""

        texts: list[str]
        ends = 0

        def __init__(self) -> None:
            self.texts = []

        def show(self, make: Callable[[], str]) -> None:
            self.texts.append(make())

        def end(self) -> None:
            self.ends += 1

    shown = Shown()
    session = CheckedSession(chosen_checkers(), patience=Patience(clock=Clock(), status=shown))
    session.run(locked, (64,), (np.zeros(1, "i4"),), {})
    assert shown.texts
    assert all(text.startswith("kernel ") and text.endswith(" programs are done") for text in shown.texts)
    assert shown.ends == 1


@pytest.mark.parametrize("limit_s", [None, 100, 5])
def test_time_before_a_kernel_runs_is_not_told_as_its_own(limit_s: float | None) -> None:
    now_s, said = [0.0], []

    def compiles(_record: LaunchFindings) -> Listeners:
        now_s[0] += 70
        return Listeners()

    patience = Patience(limit_s, said.append, lambda: now_s[0])
    session = CheckedSession([Checker("compiles", "", True, compiles)], patience=patience)
    out, name = np.zeros(8, "f4"), f"kernel one_store ({__file__}:{one_store.fn.__code__.co_firstlineno})"
    what = "its checkers, with Triton's compiler for bank-conflict, took 70 s"
    if limit_s == 5:
        with pytest.raises(LaunchTooLong) as caught:
            session.run(one_store, (8,), (out,), {})
        assert caught.value.message == f"{name} has not run: {what} to begin, longer than --limit 5 s"
    else:
        session.run(one_store, (8,), (out,), {})
    assert said == ([] if limit_s == 5 else [f"{name} begins now: {what}"])
    assert (out == 1).all() == (limit_s != 5)
