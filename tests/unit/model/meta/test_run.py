from __future__ import annotations

from typing import Any

import pytest

from bragg.model.facts import Facts
from bragg.model.meta.run import Run

H200 = {"name": "NVIDIA H200", "arch": "90"}


def test_facts_of_another_type_are_missing() -> None:
    facts = Facts({"n": True, "f": float("nan"), "big": 3, "less": -3, "list": 5, "text": 7, "table": [1]})
    assert [facts.integer(name) for name in ("n", "big", "less", "nothing")] == [None, 3, -3, None]
    assert [facts.count(name) for name in ("big", "less")] == [3, 0]
    assert (facts.number("f"), facts.texts("list"), facts.text("text"), len(facts.table("table"))) == (0, [], "7", 0)
    assert [len(Facts(value)) for value in (None, 3, [], "text")] == [0, 0, 0, 0]


def test_a_list_of_devices_keeps_its_ordinals() -> None:
    run = Run({"devices": [3, H200]})
    assert run.devices == [{}, H200]
    assert run.records_of_device(0) == []
    assert run.records_of_device(1) == [H200]
    assert run.records_of_device(2) == []


def test_merged_recordings_are_runs_of_their_own() -> None:
    run = Run({"merged": [{"rank": 0, "devices": [H200]}, 3, {"rank": 1}]})
    assert [each.rank for each in run.recordings] == [0, 1]
    assert run.records_of_device(0) == [H200]
    assert [each.rank for each in Run({"rank": 4}).recordings] == [4]


def test_times_that_do_not_fit_are_no_duration() -> None:
    assert Run({"started_ns": 5, "end_ns": 9}).duration_ns == 4
    assert Run({"started_ns": 5, "stopped_ns": 7, "end_ns": 9}).duration_ns == 2
    assert Run({"started_ns": "5", "end_ns": 9}).duration_ns is None
    assert Run({"gpu_first_ns": 9, "gpu_last_ns": 5}).gpu_span_ns == 0
    assert Run({"gpu_busy_ns": {"0": 3, "x": 4, "1": "5"}}).gpu_busy_ns == {0: 3}


def test_what_own_threads_ran_may_be_why_the_main_thread_had_no_core() -> None:
    scheduled = {"scheduled_before": [10, 5], "scheduled": [110, 45], "program_ran_before_ns": 20}
    assert Run({**scheduled, "program_ran_ns": 120}).taken_ns == 40
    assert Run({**scheduled, "program_ran_ns": 150}).taken_ns == 10
    assert Run({**scheduled, "program_ran_ns": 900}).taken_ns == 0
    assert Run({**scheduled, "program_ran_ns": 119}).taken_ns == 40
    assert Run(scheduled).taken_ns is None
    assert Run({"program_ran_before_ns": 1, "program_ran_ns": 2}).taken_ns is None


def test_a_gpu_that_failed_says_why() -> None:
    assert Run({"cuda": {"state": "failed"}}).cuda.failure == "unknown reason"
    assert Run({"cuda": {"state": "attached", "reason": "old"}}).cuda.failure == ""


@pytest.mark.parametrize("meta", [{}, {"merged": 3}, {"attributes": [3]}, {"devices": "x", "cuda": 3, "command": "x"}])
def test_nonsense_has_no_facts(meta: dict[str, Any]) -> None:
    run = Run(meta)
    assert (run.devices, dict(run.attributes), run.command, run.recordings) == ([], {}, [], [run])
