from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bragg.record.hooks.torch import operator_cost


class Machine:
    """A clock, and an operator that takes 50 ns, 80 ns while it is observed."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.is_observed = False
        self.told: list[int] = []

    def empty(self, _: int, device: str) -> None:
        assert device == "cpu"
        self.now_ns += 80 if self.is_observed else 50

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


def test_what_an_observed_operator_takes_more_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    monkeypatch.setattr(operator_cost, "_is_told", False)
    monkeypatch.setattr(operator_cost, "core", machine)
    monkeypatch.setattr(operator_cost, "perf_counter_ns", lambda: machine.now_ns)
    torch: Any = SimpleNamespace(empty=machine.empty)
    for _ in range(2):
        operator_cost.tell_cost_of_observers(torch, "libtorch_cpu.so")
    assert machine.told == [30]
    assert not machine.is_observed
