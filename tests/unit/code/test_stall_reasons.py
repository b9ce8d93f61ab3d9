from __future__ import annotations

import pytest

from bragg.code.stall_reasons import (
    StallGroup,
    main_reason,
    parse_vendor_name,
    reason_of_metric,
    stall_metrics,
)

PREFIX = "smsp__pcsamp_warps_issue_stalled_"
# As an H200 lists them, each also with the ending `_not_issued`.
H200 = """\
    branch_resolving no_instructions short_scoreboard wait long_scoreboard tex_throttle barrier membar imc_miss
    mio_throttle math_pipe_throttle drain lg_throttle not_selected misc dispatch_stall sleeping selected gmma
    warpgroup_arrive"""


@pytest.mark.parametrize("name", H200.split())
def test_every_reason_of_an_h200_has_a_meaning(name: str) -> None:
    reason, only_not_issued = parse_vendor_name(PREFIX + name)
    assert (reason.name, only_not_issued, reason.vendor_name) == (name, False, PREFIX + name)
    assert reason.meaning
    assert parse_vendor_name(f"{PREFIX}{name}_not_issued") == (reason, True)


def test_warps_that_issue_or_could_are_not_stalled() -> None:
    groups = {parse_vendor_name(PREFIX + name)[0].group for name in H200.split()}
    assert {group for group in groups if not group.is_stall} == {StallGroup.ISSUED, StallGroup.NOT_SELECTED}


def test_an_unknown_reason_is_kept_by_name() -> None:
    reason, _ = parse_vendor_name(PREFIX + "quantum_wait")
    assert (reason.name, reason.group, reason.metric) == ("quantum_wait", StallGroup.OTHER, "stalled_quantum_wait")


def test_what_is_no_stall_reason_is_refused() -> None:
    with pytest.raises(ValueError, match="not a stall reason"):
        parse_vendor_name("smsp__inst_executed")
    with pytest.raises(ValueError, match="gpu_time"):
        reason_of_metric("gpu_time")


def test_both_spellings_are_one_reason() -> None:
    assert reason_of_metric("stalled_no_instruction") == reason_of_metric("stalled_no_instructions")


def test_metrics_of_reasons_are_told_from_others() -> None:
    found = stall_metrics(["gpu_time", "stalled_barrier", "num_stalled_samples"])
    assert [(name, reason.group) for name, reason in found.items()] == [("stalled_barrier", StallGroup.BARRIER)]


def test_the_main_reason_is_the_greatest_of_those_that_hold_up() -> None:
    selected, barrier, wait = (reason_of_metric(f"stalled_{name}") for name in ("selected", "barrier", "wait"))
    assert main_reason({selected: 90, barrier: 3, wait: 4}) == wait
    assert main_reason({selected: 90, barrier: 0}) is None
