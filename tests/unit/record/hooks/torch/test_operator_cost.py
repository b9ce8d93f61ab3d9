from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from bragg.record.hooks.torch import operator_cost


class Machine:
    """A clock, and an operator that takes 50 ns, 30 ns more while it is observed, and 1,000 ns more the first times.

    With cold caches an observer costs `cold_ns`.
    """

    def __init__(self, slow_calls: int = 0, cold_ns: int = 30) -> None:
        self.cold_ns = cold_ns
        self.is_cold = False
        self.now_ns = 0
        self.slow_calls = slow_calls
        self.is_observed = False
        self.told: list[int] = []

    def empty(self, _: int, device: str) -> None:
        assert device == "cpu"
        observing_ns = self.cold_ns if self.is_cold else 30
        self.now_ns += 50 + self.is_observed * observing_ns + 1_000 * (self.slow_calls > 0)
        self.slow_calls -= 1

    def copy(self, memory: bytearray) -> None:
        self.is_cold = len(memory) > 0

    def begin_operator_trial(self, library: str) -> str:
        assert library == "libtorch_cpu.so"
        self.is_observed = True
        return ""

    def end_operator_trial(self, name: str) -> str:
        assert name == "aten::empty"
        self.is_observed = False
        return ""

    def set_operator_cost(self, ns: int) -> None:
        self.told.append(ns)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[[Machine], list[int]]:
    """What the core is told of a machine when it is measured twice."""

    def measure(machine: Machine) -> list[int]:
        monkeypatch.setattr(operator_cost, "_is_told", False)
        monkeypatch.setattr(operator_cost, "core", machine)
        monkeypatch.setattr(operator_cost, "bytes", machine.copy, raising=False)
        monkeypatch.setattr(operator_cost, "perf_counter_ns", lambda: machine.now_ns)
        torch: Any = SimpleNamespace(empty=machine.empty)
        for _ in range(2):
            operator_cost.tell_cost_of_observers(torch, "libtorch_cpu.so")
        assert not machine.is_observed
        return machine.told

    return measure


def test_what_an_observed_operator_takes_more_is_told_once(told: Callable[[Machine], list[int]]) -> None:
    assert told(Machine()) == [30]


def test_a_machine_that_gets_faster_meanwhile_is_compared_with_itself(told: Callable[[Machine], list[int]]) -> None:
    """Four rounds of eight are slow without an observer and three with one, as beside other programs."""
    calls_of_a_round = 9
    assert told(Machine(slow_calls=7 * calls_of_a_round)) == [30]


@pytest.mark.parametrize(("cold_ns", "told_ns"), [(70, 70), (350, 90)])
def test_cold_caches_count_as_far_as_they_are_cold_in_programs(
    told: Callable[[Machine], list[int]], cold_ns: int, told_ns: int
) -> None:
    assert told(Machine(cold_ns=cold_ns)) == [told_ns]
