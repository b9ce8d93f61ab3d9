"""Jitted functions that are called often and work little."""

from __future__ import annotations

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from tests.support.stepped import stepped

CALL = "train.py:12@main > jit(advance)#operator"


@pytest.mark.parametrize(("works_us", "n_found"), [(2, 1), (90, 0)])
def test_calls_whose_dispatch_a_gpu_waits_for_are_found_at_their_line(works_us: int, n_found: int) -> None:
    calls = "\n".join(
        f"host {at}-{at + 90} {CALL} ->{at + 1}\n"
        f"gpu {at + 95}-{at + 95 + works_us} {CALL} > add#operator > loop_add_fusion#kernel <-{at + 1}"
        for at in range(0, 1000, 100)
    )
    found = analysis(Evidence(stepped(calls, 1100)), ["short-jitted-calls"]).findings
    assert [each.line for each in found] == [12] * n_found
    if found:
        assert "jitted functions work 2.0 us each: the GPU waits" in found[0].message


@pytest.mark.parametrize(("n_members", "line"), [(4, 14), (1, 12)])
def test_a_loop_that_calls_one_of_them_again_and_again_is_where_they_are_many(n_members: int, line: int) -> None:
    member = CALL.replace("12@main", "14@main").replace("advance", "rollout")
    calls = [(CALL, 190), *[(member, 90)] * n_members]
    lines, at = [], 0
    for path, lasts in calls * 3:
        lines.append(f"host {at}-{at + lasts} {path} ->{at + 1}")
        lines.append(f"gpu {at + lasts + 2}-{at + lasts + 4} {path} > add#operator > add#kernel <-{at + 1}")
        at += lasts + 10
    (finding,) = analysis(Evidence(stepped("\n".join(lines), at + 100)), ["short-jitted-calls"]).findings
    assert finding.line == line
