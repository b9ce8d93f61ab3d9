from __future__ import annotations

from typing import Any

import pytest

from bragg.views.text.nccl_facts import nccl_json, nccl_lines, nccl_notes, nccl_warnings

CALL = {"function": "AllReduce", "dtype": "f32", "count": 1024, "calls": 2, "timed": 2, "gpu_ns": 9000, "channels": 1}


def meta(*calls: dict[str, Any], **facts: Any) -> dict[str, Any]:
    communicator = {"group": "c0ffee\x1b[31m", "torch_group": "", "n_ranks": 2, "calls": list(calls)}
    return {"nccl": {"interface": 5, "version": 22809, "communicators": [communicator], **facts}}


def test_one_line_says_what_took_most() -> None:
    (line,) = nccl_lines(meta(CALL, {**CALL, "function": "Broadcast", "gpu_ns": 1000}))
    assert line.startswith(
        "NCCL: 4 operations in 1 group, 10.0 us on the GPU, 9.00 us of it all-reduce[1024 f32, group c0ffee"
    )
    assert "\x1b" not in line
    assert nccl_lines({}) == nccl_lines(meta()) == []
    assert nccl_json(meta(CALL))[0]["size_bytes"] == 4096


def silent(version: int) -> dict[str, Any]:
    return {"nccl": {"interface": 0, "version": version, "communicators": []}}


def test_a_version_that_is_too_old_is_a_warning() -> None:
    why = "NCCL told nothing: the program's version is 2.26.5, and 2.27 is the first that does"
    assert list(nccl_warnings(silent(22605))) == [why]
    assert nccl_notes([silent(22605), silent(0)]) == []


@pytest.mark.parametrize(
    ("versions", "why"),
    [
        ([0, 0], "the program has not loaded libnccl.so.2"),
        ([0, 22809], "the program made no communicator of NCCL 2.28.9"),
    ],
)
def test_processes_without_a_communicator_are_said_once_for_a_run(versions: list[int], why: str) -> None:
    assert nccl_notes([silent(version) for version in versions]) == [f"NCCL told nothing: {why}"]
    assert [list(nccl_warnings(silent(version))) for version in versions] == [[], []]
    assert nccl_notes([silent(22809), meta(CALL)]) == nccl_notes([{}]) == []


def test_what_is_missing_is_counted() -> None:
    assert list(nccl_warnings(meta({**CALL, "timed": 1}, lost_calls=3))) == [
        "3 operations of NCCL not counted: too many different ones",
        "1 operation of NCCL without time on the GPU: NCCL did not tell when it ended",
    ]
    assert list(nccl_warnings(meta(CALL))) == []
