"""What hardware counters lack, in words."""

from __future__ import annotations

from typing import Any

import pytest

from bragg.views.text.counter_facts import counter_warnings


def warnings(device: dict[str, Any], **told: Any) -> list[str]:
    return list(counter_warnings({"counters": {"devices": {"0": device}, **told}}))


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ({"samples": 9}, []),
        ({"reason": "in use"}, ["no counters of GPU 0: in use"]),
        (
            {"left_out": ["DRAM read", "nonsense"]},
            [
                "GPU 0 does not count DRAM read, nonsense with this CUPTI in one pass: "
                "bragg doctor --counters lists what it counts"
            ],
        ),
        ({"gaps": 1, "gap_ns": 5_000_000}, ["counters of GPU 0 were not sampled for 5.00 ms in all (1 gap)"]),
        (
            {"gaps": 3, "gap_ns": 2_000_000_000, "restarts": 2},
            [
                "counters of GPU 0 were not sampled for 2.00 s in all "
                "(3 gaps, 2 of them since sampling began again less often)"
            ],
        ),
    ],
)
def test_each_lack_is_a_line(device: dict[str, Any], said: list[str]) -> None:
    assert warnings(device) == said


def test_what_is_of_all_gpus_is_told_once() -> None:
    assert warnings({}, reason="CUPTI is too old") == ["no hardware counters: CUPTI is too old"]
    assert warnings({}, lost_values=1) == ["1 value of counters not kept: the timeline was not written in time"]
    assert list(counter_warnings({})) == []
    assert list(counter_warnings({"counters": 3})) == []
