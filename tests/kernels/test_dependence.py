"""Checkers that execute launches again: correct kernels stay clean, results and outputs are those of one execution."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bragg.debug
from bragg.debug.checkers.again.replay import Replay
from bragg.debug.faults import Unsupported

pytest.importorskip("triton")
pytest.importorskip("ml_dtypes")

import triton
import triton.language as tl

from tests.kernels.correct import CORRECT

AGAIN = ("tuned-twice", "order-dependence", "launch-dependence", "precision")
# Correct as they are, and yet their results depend on the order of programs, or on how many there are.
DEPENDENT = {
    "ticket_lock": "order-dependence",
    "slots_that_a_counter_hands_out": "order-dependence",
    "stack_that_programs_push_on": "order-dependence",
    "table_of_keys_by_comparison": "order-dependence",
    "nodes_that_are_visited_once": "order-dependence",
    "slots_of_a_pool": "order-dependence",
    "stencil_on_a_ring": "launch-dependence",
}


@pytest.mark.parametrize("name", CORRECT)
def test_correct_kernels_depend_on_nothing(name: str) -> None:
    with bragg.debug.check(only=AGAIN) as report:
        pairs = CORRECT[name]()
    assert {finding.rule for finding in report} == ({DEPENDENT[name]} if name in DEPENDENT else set()), report.lines()
    for actual, expected in pairs:
        np.testing.assert_allclose(np.asarray(actual, "f8"), np.asarray(expected, "f8"), rtol=2e-3, atol=2e-3)


def tuned(**options: Any) -> Callable[[Any], Any]:
    return triton.autotune([triton.Config({"B": 32}), triton.Config({"B": 64})], key=["n"], **options)


@triton.jit
def adds(x, total, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(total, tl.sum(tl.load(x + place, mask=place < n, other=0.0), 0))


@triton.jit
def doubles(x, out, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + place, tl.load(x + place, mask=place < n) * 2, mask=place < n)


def grid(meta: dict[str, Any]) -> tuple[int]:
    return (triton.cdiv(100, meta["B"]),)


def zeroed(arguments: dict[str, Any], reset_only: bool = False) -> None:
    arguments["total"].fill_(0)


@pytest.mark.parametrize(
    "options",
    [{"reset_to_zero": ["total"]}, {"restore_value": ["total"]}, {"pre_hook": zeroed}],
    ids=["reset", "restored", "hook"],
)
def test_a_sum_that_is_reset_may_be_tuned(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    total = torch.zeros(1)
    with bragg.debug.check() as report:
        tuned(**options)(adds)[grid](torch.ones(100), total, 100)
    assert (len(report), total.item()) == (0, 100), report.lines()


def test_a_hook_of_the_configuration_resets_too() -> None:
    configs = [triton.Config({"B": size}, pre_hook=lambda given: given["total"].fill(0)) for size in (32, 64)]
    total = np.full(1, 7, "f4")
    with bragg.debug.check() as report:
        triton.autotune(configs, key=["n"])(adds)[grid](np.ones(100, "f4"), total, 100)
    assert (len(report), total.item()) == (0, 100), report.lines()


def test_a_kernel_that_is_not_tuned_may_add() -> None:
    total = np.zeros(1, "f4")
    with bragg.debug.check() as report:
        triton.autotune([triton.Config({"B": 32})], key=[])(adds)[grid](np.ones(100, "f4"), total, 100)
        tuned()(doubles)[grid](np.ones(100, "f4"), np.zeros(100, "f4"), 100)
    assert (len(report), total.item()) == (0, 100), report.lines()


@triton.jit
def tiles_by_tickets(x, out, counter, n, B: tl.constexpr):
    place = tl.atomic_add(counter, 1) * B + tl.arange(0, B)
    tl.store(out + place, tl.load(x + place, mask=place < n) * 2, mask=place < n)


@triton.jit
def grid_stride(x, out, n, B: tl.constexpr):
    for start in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        place = start + tl.arange(0, B)
        tl.store(out + place, tl.load(x + place, mask=place < n) * 2, mask=place < n)


@triton.jit
def prints(x):
    tl.device_print("program", tl.program_id(0))
    tl.store(x + tl.program_id(0), 1.0)


def test_tickets_for_tiles_give_the_same_in_any_order() -> None:
    x, out = np.arange(100, dtype="f4"), np.zeros(100, "f4")
    with bragg.debug.check(add=AGAIN) as report:
        tiles_by_tickets[(4,)](x, out, np.zeros(1, "i4"), 100, B=32)
        grid_stride[(2,)](x, out, 100, B=32)
        doubles[grid](x, out, 100, B=32)
    assert len(report) == 0, report.lines()
    np.testing.assert_array_equal(out, x * 2)


def test_what_a_kernel_prints_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    with bragg.debug.check(add=AGAIN) as report:
        prints[(2,)](np.zeros(2, "f4"))
    assert len(report) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_results_of_a_checked_launch_are_those_of_the_launch_itself() -> None:
    from tests.kernels.planted.dependence import compacts_by_a_counter

    x, plain, checked = np.arange(100, dtype="i4"), np.zeros(100, "i4"), np.zeros(100, "i4")
    counters = np.zeros((2, 1), "i4")
    with bragg.debug.interpret():
        compacts_by_a_counter[(7,)](x, plain, counters[0], 100, B=16)
    with bragg.debug.check(add=AGAIN) as report:
        compacts_by_a_counter[(7,)](x, checked, counters[1], 100, B=16)
    assert len(report) == 1
    np.testing.assert_array_equal(checked, plain)
    np.testing.assert_array_equal(counters, 50)


def test_the_element_that_differs_is_shown() -> None:
    from tests.kernels.planted.dependence import takes_its_number_from_a_ticket

    with bragg.debug.check(add=["order-dependence"]) as report:
        takes_its_number_from_a_ticket[(5,)](np.zeros(1, "i4"), np.zeros(5, "i4"))
    (finding,) = report
    assert finding.example == "out[0] is 0, and 4 in another order"
    assert finding.other is not None
    assert finding.other["code"] == "tl.store(out + own, tl.program_id(0))"


@triton.jit
def doubles_too_many(x, out, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + place, tl.load(x + place) * 2, mask=place < n)


def test_what_fails_at_once_is_not_said_to_fail_when_it_is_tuned() -> None:
    with bragg.debug.check(only=["out-of-bounds", "tuned-twice"]) as report:
        tuned()(doubles_too_many)[(1,)](np.ones(20, "f4"), np.zeros(20, "f4"), 20)
    assert [finding.rule for finding in report] == ["out-of-bounds"], report.lines()


def test_a_second_run_that_the_engine_cannot_make_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def differences(*_: object) -> None:
        raise Unsupported("a hook needs a GPU")

    monkeypatch.setattr(Replay, "differences", differences)
    with bragg.debug.check(only=["tuned-twice"]) as report:
        tuned()(adds)[(7,)](np.ones(100, "f4"), np.zeros(1, "f4"), 100)
    assert "note: adds: tuned-twice could not judge: a hook needs a GPU" in report.verdicts.lines()
