"""Laws of the idle time of GPUs, on random timelines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bragg.analyze.idle import idle_times
from bragg.analyze.idle_paths import with_idle_paths
from bragg.model import CallTree, FrameKind, FrameTable, Profile, SliceTable, TrackKind, TrackTable

THREADS, STREAMS = (0, 1), (2, 3, 4)  # two streams of device 0, one of device 1
TRACKS = TrackTable(
    kind=[TrackKind.HOST_THREAD] * 2 + [TrackKind.GPU_STREAM] * 3,
    process=[7] * 5,
    device=[-1, -1, 0, 0, 1],
    context=[0] * 5,
    stream=[70, 71, 7, 13, 7],
    name=[""] * 5,
)
KINDS = (FrameKind.ROOT, FrameKind.SCOPE, FrameKind.GPU_API, FrameKind.KERNEL)
FRAMES = FrameTable(KINDS, ["root", "step", "launch", "kernel"], [""] * 4, [0] * 4, [-1, -1, -1, 0])
TREE = CallTree(np.array([-1, 0, 1, 2]), np.arange(4), FRAMES)


@st.composite
def timelines(draw: st.DrawFn) -> Profile:
    """Host slices and work of two devices that overlap in any way; ids of launches may repeat, or lead nowhere."""
    host = st.tuples(st.integers(0, 60), st.integers(0, 30), st.integers(1, 2), st.sampled_from(THREADS))
    work = st.tuples(st.integers(0, 90), st.integers(0, 9), st.just(3), st.sampled_from(STREAMS))
    rows = draw(st.lists(host, max_size=12)) + draw(st.lists(work, min_size=1, max_size=9))
    ids = draw(st.lists(st.integers(0, 6), min_size=len(rows), max_size=len(rows)))
    return Profile({}, TREE, {}, TRACKS, SliceTable(*np.array(rows, np.int64).T, ids).sorted())


def busy_and_span(profile: Profile, device: int) -> tuple[int, int]:
    """In how many ns a device works, counted one by one, and how many are between its first and its last work."""
    rows = np.flatnonzero(profile.tracks.device[profile.slices.track] == device)
    start, duration = profile.slices.start_ns[rows], profile.slices.duration_ns[rows]
    busy = {moment for first, length in zip(start, duration, strict=True) for moment in range(first, first + length)}
    return len(busy), int((start + duration).max() - start.min()) if len(rows) else 0


@given(timelines(), st.integers(0, 20))
def test_idle_time_and_work_are_the_span(profile: Profile, least_ns: int) -> None:
    idle = with_idle_paths(profile, least_ns)
    idle.check()
    spans = [busy_and_span(profile, device) for device in (0, 1)]
    assert idle.total("gpu_idle_time") + sum(busy for busy, _ in spans) == sum(span for _, span in spans)
    assert idle.own("gpu_idle_time").min() >= 0


@given(timelines())
def test_paths_of_the_host_have_what_it_launched_late(profile: Profile) -> None:
    idle = with_idle_paths(profile, least_ns=0)
    of_host = idle.own("gpu_idle_time")[: len(TREE)].sum()
    assert of_host == sum(device.late_launch_ns or 0 for device in idle_times(profile))


@given(timelines(), st.integers(0, 1000))
def test_every_pause_is_counted_once_and_the_longest_part_is_within_the_time_of_its_path(
    profile: Profile, least_ns: int
) -> None:
    idle = with_idle_paths(profile, least_ns)
    time, count = idle.own("gpu_idle_time"), idle.own("gpu_idle_count")
    longest = np.nan_to_num(idle.own("gpu_idle_longest"))
    assert count.sum() == sum(device.n_gaps or 0 for device in idle_times(profile))
    assert (time[count > 0] > 0).all()
    assert ((longest <= time) & ((longest > 0) == (time > 0))).all()


@given(timelines())
def test_what_other_devices_do_changes_nothing(profile: Profile) -> None:
    alone = [
        replace(profile, slices=profile.slices.take(profile.tracks.device[profile.slices.track] != other))
        for other in (0, 1)
    ]
    totals = [with_idle_paths(each).total("gpu_idle_time") for each in alone if (each.slices.track > 1).any()]
    assert sum(totals) == with_idle_paths(profile).total("gpu_idle_time")
