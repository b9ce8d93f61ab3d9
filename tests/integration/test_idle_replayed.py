"""What the recorder's fold makes of real programs' timelines, class by class and path by path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from bragg import formats
from bragg.analyze.idle import Idle, idle_times
from bragg.analyze.idle_paths import with_idle_paths
from bragg.analyze.wall.parts import wall_parts
from bragg.analyze.wall.wall_time import Steady
from bragg.model import FrameKind, Profile
from tests.support.idle_replay import replayed
from tests.support.recordings import RECORDINGS, SAMPLE

CLASSES = ("idle_ns", "late_launch_ns", "queued_ns", "waited_ns", "full_queue_ns")
WITHIN = 0.02


@lru_cache(maxsize=1)
def both(path: Path, fakes_directory: Path) -> tuple[Profile, Profile]:
    """A recording with its timeline, and with what the native fold says of it instead."""
    profile = formats.load(path)
    return profile, replayed(profile, fakes_directory)


def spans_of(folded: Profile) -> Iterator[Steady | None]:
    """All of a run, and its steady state as it is told without a timeline."""
    yield None
    parts = wall_parts(folded)
    assert parts is not None
    yield parts.steady


def by_class(idle: Idle) -> dict[str, float]:
    return {name: getattr(idle, name) for name in CLASSES}


def by_path(profile: Profile, steady: Steady | None) -> Counter[tuple[str, ...]]:
    """Idle time by names of call paths; what a call of the GPU's API has is its caller's."""
    found = with_idle_paths(profile, steady=steady)
    tree, own = found.tree, found.own("gpu_idle_time")
    sums: Counter[tuple[str, ...]] = Counter()
    for node in np.flatnonzero(own).tolist():
        above = tree.path(node)[1:]
        sums[tuple(tree.label(at) for at in above if tree.kind[at] != FrameKind.GPU_API)] += int(own[node])
    return sums


@pytest.mark.parametrize("path", [*RECORDINGS, SAMPLE], ids=lambda path: path.stem)
def test_classes_are_those_of_the_timeline(path: Path, fakes_directory: Path) -> None:
    timeline, folded = both(path, fakes_directory)
    for steady in spans_of(folded):
        truths, found = idle_times(timeline, steady), idle_times(folded, steady)
        assert len(found) == len(truths)
        for truth, other in zip(truths, found, strict=True):
            assert None not in by_class(other).values()
            assert by_class(other) == pytest.approx(by_class(truth), abs=WITHIN * truth.idle_ns, rel=WITHIN)


@pytest.mark.parametrize("path", [*RECORDINGS, SAMPLE], ids=lambda path: path.stem)
def test_paths_are_those_of_the_timeline(path: Path, fakes_directory: Path) -> None:
    timeline, folded = both(path, fakes_directory)
    for steady in spans_of(folded):
        truth, found = by_path(timeline, steady), by_path(folded, steady)
        for name in truth.keys() | found.keys():
            assert found[name] == pytest.approx(truth[name], abs=WITHIN * truth.total()), name
