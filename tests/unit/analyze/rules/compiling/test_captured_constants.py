"""Large arrays that are compiled into programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from tests.support.stepped import stepped


@pytest.mark.parametrize(
    ("compiled_us", "told", "is_told"),
    [
        (100, "33554432 ray.py:7", True),
        (100, None, False),
        (5, "33554432 ray.py:7", False),  # of 1,000: compiling takes no time
    ],
)
def test_arrays_that_programs_hold_are_found_where_they_are_read(
    compiled_us: int, told: str | None, is_told: bool
) -> None:
    call = "train.py:20@main > jit(step)#operator"
    text = (
        f"host 0-{compiled_us} {call} > [compile] jit_step#scope\n"
        f"host {compiled_us}-{compiled_us + 10} {call}\ngpu 200-900 {call} > dot_general#operator > gemm#kernel"
    )
    profile = stepped(text, 1000)
    constants = {"constants of program 0": told} if told else {}
    attributes = {"[compile] jit_step": {"compiled program 0": "inputs 0", **constants}}
    profile = replace(profile, meta={**profile.meta, "attributes": attributes})
    found = analysis(Evidence(profile), ["captured-constants"]).findings
    assert [(each.file, each.line, each.gain) for each in found] == [("ray.py", 7, None)] * is_told
    assert all("jit_step holds 34 MB" in each.message for each in found)
