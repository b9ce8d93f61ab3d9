"""Small kernels of two streams that run in turns are found; those that cannot overlap, or already do, are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding, Profile
from bragg.model.kernels.configurations import KernelTable
from tests.support.stepped import stepped

LEFT, RIGHT = "train.py:3@main > left#kernel", "train.py:5@main > right#kernel"
LAUNCH = "train.py:3@main > cuLaunchKernel#gpu_api"


def launched(profile: Profile, blocks: int) -> Profile:
    """The profile with the grids of its kernels, on a GPU of 132 multiprocessors."""
    frames = [row for row, name in enumerate(profile.tree.frames.name) if name in ("left", "right")]
    columns: dict[str, Any] = {name: np.ones(len(frames), np.int64) for name in KernelTable.columns()}
    columns |= {"frame": np.array(frames, np.int64), "grid_x": np.full(len(frames), blocks)}
    meta = {**profile.meta, "devices": [{"num_sms": 132, "arch": "90"}]}
    return replace(profile, meta=meta, kernels=KernelTable(**columns))


def found(right: str, *, launch_us: int = 6, blocks: int = 16, left: str = LEFT) -> list[Finding]:
    """A kernel of 400 us on one stream, launched in time, and one on another stream."""
    text = f"""
host 0-3 {LAUNCH} ->1
host {launch_us - 3}-{launch_us} {LAUNCH} ->2
gpu 5-405 {left} <-1
gpu8 {right} {RIGHT} <-2
"""
    return analysis(Evidence(launched(stepped(text, 1000), blocks)), ["streams-in-turns"]).findings


def test_small_kernels_in_turns_are_found_where_the_waiting_one_is_launched() -> None:
    (finding,) = found("407-807")
    assert finding.message == (
        "kernels wait for a kernel of another stream, though the GPU has room for both: 1 a step"
    )
    assert (finding.file, finding.line) == ("train.py", 5)
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.2, abs=0.01)  # of each 1,000 us, 399 beside which it would fit
    assert [each.value for each in finding.evidence] == pytest.approx([1, 399_000], rel=0.01)


@pytest.mark.parametrize(
    ("right", "launch_us", "blocks"),
    [
        ("9-409", 6, 16),  # side by side
        ("500-900", 6, 16),  # not because of the other
        ("410-810", 404, 16),  # launched when the other had nearly ended
        ("407-807", 6, 132),  # each fills the GPU
    ],
)
def test_what_does_not_wait_or_does_not_fit_is_fine(right: str, launch_us: int, blocks: int) -> None:
    assert found(right, launch_us=launch_us, blocks=blocks) == []


def test_kernels_of_a_graph_wait_for_what_the_graph_says() -> None:
    assert found("407-807", left=LEFT.replace("main > ", "main > <captured_at>#scope > ")) == []
