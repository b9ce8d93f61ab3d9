"""What another context on the GPU took, by how long launches took."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from bragg import formats
from bragg.analyze.time_slices import time_slices
from bragg.model import DurationTable
from bragg.model.durations import buckets_of
from tests.support.recordings import RECORDINGS, SAMPLE

SLICE_NS = 2_500_000


def launches(kernels: Mapping[int, Mapping[int, int]]) -> DurationTable:
    """Of each kernel, by its duration in ns, how many launches took so long."""
    rows = [(frame, ns, count) for frame, took in kernels.items() for ns, count in took.items()]
    frame, duration_ns, count = (np.array(column) for column in zip(*rows, strict=True))
    return DurationTable(frame.astype(np.int32), buckets_of(duration_ns), count, np.zeros(len(rows), np.int64))


def interrupted(median_ns: int, n_interrupted: int, by_ns: int = SLICE_NS) -> dict[int, int]:
    return {median_ns: 1000 - n_interrupted, median_ns + by_ns: n_interrupted}


def test_short_and_long_kernels_that_are_longer_by_the_same_time_were_interrupted() -> None:
    found = time_slices(launches({3: interrupted(4_000, 2), 5: interrupted(50_000, 20), 9: interrupted(600_000, 240)}))
    assert found is not None
    assert found.launches == 262
    assert found.slice_ns == pytest.approx(SLICE_NS, rel=0.04)
    assert found.share == pytest.approx(262 * SLICE_NS / (262 * SLICE_NS + 654_000 * 1000), rel=0.04)


@pytest.mark.parametrize(
    "kernels",
    [
        {},
        {0: {4_000: 1000}, 1: {50_000: 1000}, 2: {600_000: 1000}},
        # Two kernels may have two lengths of input each.
        {0: interrupted(50_000, 20), 1: interrupted(600_000, 240)},
        # Longer inputs make a longer kernel longer by more.
        {
            0: interrupted(4_000, 40, 600_000),
            1: interrupted(50_000, 40, 2_000_000),
            2: interrupted(600_000, 40, 9_000_000),
        },
        # Kernels of the same length may have the same input.
        {0: interrupted(50_000, 20), 1: interrupted(60_000, 20), 2: interrupted(70_000, 20)},
        # Little of the time.
        {0: interrupted(4_000, 1), 1: interrupted(50_000, 4), 2: interrupted(600_000, 4)},
    ],
)
def test_what_may_be_the_programs_own_is_not_blamed_on_another(kernels: dict[int, dict[int, int]]) -> None:
    assert time_slices(launches(kernels) if kernels else DurationTable.empty()) is None


def test_of_recordings_those_beside_another_program_are_told() -> None:
    shared = time_slices(formats.load(RECORDINGS[0].parent / "unseen/h100-residual_norm_slow.bragg").durations)
    assert shared is not None
    assert shared.launches == 1137
    assert shared.slice_ns == pytest.approx(2.46e6, rel=0.01)
    assert shared.share == pytest.approx(0.407, abs=0.001)
    assert time_slices(formats.load(SAMPLE).durations) is None
