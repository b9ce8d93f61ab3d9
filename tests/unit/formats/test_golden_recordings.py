"""Recordings of real programs on a GPU: they keep the laws, and their sums are those of their timelines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bragg import formats
from bragg.model import TrackKind

RECORDINGS = sorted((Path(__file__).parents[2] / "golden/recordings").glob("*.bragg"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_sums_are_those_of_the_timeline(path: Path) -> None:
    profile = formats.load(path)
    profile.check()
    slices = profile.slices
    on_gpu = np.isin(
        slices.track, [track for track, kind in enumerate(profile.tracks.kind) if kind == TrackKind.GPU_STREAM]
    )
    assert profile.total("gpu_time") == slices.duration_ns[on_gpu].sum()
    assert profile.total("gpu_count") == on_gpu.sum()


def test_there_are_five_programs() -> None:
    assert len(RECORDINGS) == 5
