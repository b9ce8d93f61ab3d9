from __future__ import annotations

from typing import Any

import pytest

from bragg.model.meta.completeness import completeness_of

WHOLE: dict[str, Any] = {"statistics": {"launches": 9, "dropped_events": 0}, "capture": {"complete": True}}


def test_nothing_that_is_missing_is_complete() -> None:
    assert completeness_of(WHOLE).word == "complete"
    assert list(completeness_of(WHOLE).warnings()) == []


@pytest.mark.parametrize("meta", [{}, {"recorder": "nsys", **WHOLE}])
def test_a_recorder_that_does_not_tell_its_losses_is_unknown(meta: dict[str, Any]) -> None:
    assert completeness_of(meta).word == "unknown"


def test_losses_are_counted_and_the_first_is_named() -> None:
    meta = {**WHOLE, "statistics": {"dropped_events": 3, "bad_timestamps": 1}, "cuda": {"dropped_records": 4}}
    found = completeness_of(meta)
    assert found.word == "incomplete: 7 records dropped and 1 more loss, sums are too low"
    assert [str(loss) for loss in found.missing] == ["7 records dropped", "1 record without usable timestamps"]


def test_a_kernel_that_failed_is_why_a_record_has_no_times() -> None:
    lost = {**WHOLE, "statistics": {"bad_timestamps": 1}}
    (loss,) = completeness_of({**lost, "kernel_error": "an illegal memory access was encountered"}).missing
    assert str(loss) == "1 record without usable timestamps (a kernel that failed has none)"
    (unexplained,) = completeness_of(lost).missing
    assert unexplained.why == ""


def test_a_capture_that_could_not_be_written_comes_before_what_was_counted() -> None:
    capture = {"complete": False, "write_error": "File too large"}
    meta = {"statistics": {"dropped_events": 3}, "capture": capture}
    expected = "incomplete: the capture could not be written to its end and 1 more loss, sums are too low"
    assert completeness_of(meta).word == expected


def test_what_stands_at_a_coarser_place_is_complete_and_told() -> None:
    found = completeness_of({"statistics": {"refused_nodes": 9}})
    assert found.word == "complete"
    assert list(found.warnings()) == ["9 call paths beyond the limit of the tree"]


def test_what_ran_before_recording_began_is_missing() -> None:
    (loss,) = completeness_of({"statistics": {}, "cuda": {"state": "attached", "missed_start_ns": 19_600_000}}).missing
    assert str(loss) == "GPU work of up to the first 20 ms is missing (another tool owns CUDA_INJECTION64_PATH)"


def test_merged_recordings_are_complete_together() -> None:
    killed = {**WHOLE, "capture": {"complete": False}}
    lossy = {"statistics": {"dropped_events": 2}}
    assert completeness_of({"merged": [WHOLE, WHOLE]}).word == "complete"
    assert completeness_of({"merged": [lossy, lossy]}).word == "incomplete: 4 records dropped, sums are too low"
    (loss,) = completeness_of({"merged": [killed, WHOLE, killed]}).missing
    assert loss.what == "what came after the last flush is missing"


def test_a_run_that_continues_is_running_and_lacks_nothing() -> None:
    running = {**WHOLE, "capture": {"complete": False, "running": True}}
    found = completeness_of(running)
    assert found.word == "running"
    assert list(found.warnings()) == []
    lossy = {**running, "statistics": {"dropped_events": 2}}
    assert completeness_of(lossy).word == "running, incomplete: 2 records dropped, sums are too low"
    assert completeness_of({"merged": [WHOLE, running]}).word == "running"


@pytest.mark.parametrize("meta", [{"merged": 3}, {"statistics": 3}, {"statistics": {"dropped_events": "x"}}])
def test_nonsense_is_no_loss(meta: dict[str, Any]) -> None:
    assert completeness_of(meta).missing == ()
