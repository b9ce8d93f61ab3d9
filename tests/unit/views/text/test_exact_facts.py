"""What exact counters cost and lack, in words."""

from __future__ import annotations

from typing import Any

import pytest

from bragg.views.text.exact_facts import exact_lines


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            {"counted_launches": 4, "counted_kernels": 2, "spent_ns": 310_000_000},
            [
                "exact counters: 4 launches of 2 kernels counted one at a time; "
                "that took 310 ms, which host times contain"
            ],
        ),
        ({}, ["exact counters: no kernel was launched whose name 'copy' finds"]),
        (
            {"not_counted": {"captured": 2, "cooperative": 1}},
            [
                "exact counters: none of 1 kernel: cooperative launches, whose blocks wait for each other",
                "exact counters: none of 2 kernels: a stream was captured into a graph",
            ],
        ),
        (
            {"counted_launches": 1, "counted_kernels": 1, "incomplete_kernels": 1},
            [
                "exact counters: 1 launch of 1 kernel counted one at a time; that took 0 ns, which host times contain",
                "exact counters: 1 kernel ran too few launches for all counters, which take turns over launches",
            ],
        ),
        ({"devices": {"0": {"reason": "in use"}}}, ["exact counters of GPU 0 ended: in use"]),
        ({"reason": "CUPTI is too old"}, ["no exact counters: CUPTI is too old"]),
        (
            {"counted_launches": 1, "counted_kernels": 1, "devices": {"1": {"reason": "in use", "left_out": ["x"]}}},
            [
                "exact counters: 1 launch of 1 kernel counted one at a time; that took 0 ns, which host times contain",
                "exact counters of GPU 1 ended: in use",
                "GPU 1 does not count x with this CUPTI",
            ],
        ),
    ],
)
def test_each_fact_is_a_line(told: dict[str, Any], said: list[str]) -> None:
    assert list(exact_lines({"exact_counters": {"kernels": "copy", **told}})) == said


def test_profiles_without_exact_counters_say_nothing() -> None:
    assert list(exact_lines({})) == []
    assert list(exact_lines({"exact_counters": 3})) == []
