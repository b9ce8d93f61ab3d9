"""Kernels that move more bytes than they state, as counters tell."""

from __future__ import annotations

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding
from tests.support.work import H200, working_profile

GB = 1e9


def found(moved: float, counted_ns: float = 4e6) -> list[Finding]:
    """Of a kernel of 4 ms that states 1 GB."""
    profile = working_profile(
        "root\n  train.py:8@step\n    softmax 4ms x4 @0",
        [H200],
        bytes={"softmax": GB},
        dram_bytes={"softmax": moved},
        dram_counted_time={"softmax": counted_ns},
    )
    return analysis(Evidence(profile), ["reread-memory"]).findings


def test_a_kernel_that_moves_more_than_it_states_is_found_with_what_takes_the_time() -> None:
    (finding,) = found(4 * GB)
    assert finding.message.startswith("softmax moves 4.0 times the bytes that it states")
    assert (finding.file, finding.line) == ("train.py", 8)
    values = {each.name: each.value for each in finding.evidence}
    assert values["share of its time that these bytes take at least"] == pytest.approx(0.21, abs=0.01)  # at 4.8 TB/s


def test_launches_that_were_not_counted_move_as_much() -> None:
    (finding,) = found(2 * GB, counted_ns=2e6)
    assert finding.message.startswith("softmax moves 4.0 times")


def test_a_kernel_that_a_cache_serves_nearly_as_stated_is_fine() -> None:
    assert found(1.5 * GB) == []
