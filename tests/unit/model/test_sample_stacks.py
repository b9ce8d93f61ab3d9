from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.model import Profile, SliceTable, TrackKind, TrackTable
from bragg.model.sample_stacks import with_sample_stacks, without_samples
from tests.support.profiles import profile_from_text

TREE = "root\n  main\n    load\n      read\n    train\n      k 1us"


def sampled(*samples: tuple[str, int, int]) -> Profile:
    """The tree with samples (name, begin and end) of one thread, and a slice that was measured on another track."""
    profile = profile_from_text(TREE)
    node = {profile.tree.label(row): row for row in range(len(profile.tree))}
    names, begins, ends = zip(*samples, strict=True)
    slices = SliceTable(
        start_ns=np.array([5, *begins]),
        duration_ns=np.array([9, *(end - begin for begin, end in zip(begins, ends, strict=True))]),
        node=np.array([node["k"], *(node[name] for name in names)]),
        track=np.array([0, *[1] * len(samples)]),
        correlation=np.zeros(len(samples) + 1, np.int64),
    )
    tracks = TrackTable(
        kind=np.array([TrackKind.GPU_STREAM, TrackKind.SAMPLES], np.uint8),
        process=np.ones(2, np.int32),
        device=np.array([0, -1]),
        context=np.zeros(2, np.int64),
        stream=np.array([7, 12]),
        name=["", ""],
    )
    return replace(profile, slices=slices.sorted(), tracks=tracks)


def stays(profile: Profile) -> list[tuple[str, int, int]]:
    slices = profile.slices
    columns = (slices.node.tolist(), slices.start_ns.tolist(), slices.duration_ns.tolist(), slices.track.tolist())
    return [
        (profile.tree.label(node), start, start + lasts)
        for node, start, lasts, track in zip(*columns, strict=True)
        if track == 1
    ]


def test_a_function_is_one_slice_for_as_long_as_samples_find_it() -> None:
    profile = sampled(("read", 0, 10), ("load", 10, 20), ("train", 20, 30), ("train", 30, 40))
    found = with_sample_stacks(profile)
    assert stays(found) == [("main", 0, 40), ("load", 0, 20), ("read", 0, 10), ("train", 20, 40)]
    found.check()
    assert len(found.slices.take(found.slices.track == 0)) == 1


def test_a_pause_that_is_longer_than_a_sample_ends_what_was_open() -> None:
    profile = sampled(("load", 0, 10), ("load", 15, 25), ("load", 60, 70))
    assert stays(with_sample_stacks(profile)) == [("main", 0, 25), ("load", 0, 25), ("main", 60, 70), ("load", 60, 70)]


def test_nodes_that_are_not_shown_have_no_slices() -> None:
    profile = sampled(("read", 0, 10), ("train", 10, 20))
    is_shown = np.array([profile.tree.label(row) != "load" for row in range(len(profile.tree))])
    assert stays(with_sample_stacks(profile, is_shown)) == [("main", 0, 20), ("read", 0, 10), ("train", 10, 20)]


def test_samples_are_left_out_and_named() -> None:
    profile = sampled(("read", 0, 10))
    assert stays(without_samples(profile)) == []
    assert profile.tracks.label(1) == "samples of thread 12"


@pytest.mark.parametrize("change", [with_sample_stacks, without_samples])
def test_a_profile_without_samples_stays_the_same(change: object) -> None:
    profile = profile_from_text(TREE)
    assert callable(change)
    assert change(profile) is profile
