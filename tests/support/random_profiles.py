"""Random profiles for property tests, and a form in which equal profiles are equal."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import strategies as st

from bragg.model import (
    CallTree,
    Combine,
    FrameKind,
    FrameTable,
    KernelTable,
    Metric,
    MetricKind,
    Profile,
    SliceTable,
    TrackKind,
    TrackTable,
)

_FRAMES = FrameTable(
    kind=np.array(
        [FrameKind.ROOT, FrameKind.SCOPE, FrameKind.PYTHON, FrameKind.PYTHON, FrameKind.KERNEL, FrameKind.KERNEL]
    ),
    name=["root", "step", "main", "main", "matmul", "matmul"],
    file=["", "", "train.py", "train.py", "", ""],
    line=np.array([0, 0, 3, 9, 0, 0]),
    device=np.array([-1, -1, -1, -1, 0, 1]),
)
_TRACKS = TrackTable(
    kind=np.array([TrackKind.HOST_THREAD, TrackKind.GPU_STREAM]),
    process=np.array([7, 7]),
    device=np.array([-1, 0]),
    context=np.array([0, 1]),
    stream=np.array([70, 13]),
    name=["main", ""],
)


@st.composite
def trees(draw: st.DrawFn, max_nodes: int = 24) -> CallTree:
    """Any tree whose parents precede their children, also with equal siblings."""
    above = draw(st.lists(st.integers(0, max_nodes), max_size=max_nodes - 1))
    parent = [-1, *(choice % node for node, choice in enumerate(above, start=1))]
    frame = draw(st.lists(st.integers(1, len(_FRAMES) - 1), min_size=len(above), max_size=len(above)))
    return CallTree(np.array(parent, np.int32), np.array([0, *frame], np.int32), _FRAMES)


@st.composite
def slice_tables(draw: st.DrawFn, n_nodes: int, max_slices: int = 12) -> SliceTable:
    """Slices on two tracks that may overlap in any way."""
    row = st.tuples(
        st.integers(0, 40), st.integers(0, 12), st.integers(0, n_nodes - 1), st.integers(0, 1), st.integers(0, 3)
    )
    rows = draw(st.lists(row, max_size=max_slices))
    columns = np.array(rows, np.int64).reshape(-1, 5).T
    return SliceTable(*columns).sorted()  # type: ignore[arg-type]


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """A profile with metrics of every kind, slices and kernels; now and then without some of them."""
    tree = draw(trees())

    def own(minimum: int = 0) -> Any:
        return np.array(draw(st.lists(st.integers(minimum, 1000), min_size=len(tree), max_size=len(tree))))

    shortest = np.where(own(-500) < 0, np.nan, own())
    candidates = [
        Metric("gpu_time", "ns", MetricKind.INCLUSIVE, own()),
        Metric("gpu_time_min", "ns", MetricKind.PROPERTY, shortest, Combine.MIN),
        Metric("host_count", "1", MetricKind.EXCLUSIVE, own()),
    ]
    metrics = [metric for metric in candidates if draw(st.booleans())]
    counts = draw(st.lists(st.integers(1, 9), max_size=3))
    kernels = {name: np.zeros(len(counts), np.int64) for name in KernelTable.columns()}
    frame = np.array([4, 5, 4][: len(counts)], np.int32)
    return Profile(
        meta={"rank": draw(st.integers(0, 3)), "host": "node"},
        tree=tree,
        metrics={metric.name: metric for metric in metrics},
        tracks=_TRACKS,
        slices=draw(slice_tables(len(tree))),
        kernels=KernelTable(**{**kernels, "frame": frame, "count": np.array(counts, np.int64)}),
    )


def frame_keys(profile: Profile) -> list[tuple[int, str, str, int, int]]:
    """What each frame stands for."""
    frames = profile.tree.frames
    columns = (frames.kind.tolist(), frames.name, frames.file, frames.line.tolist(), frames.device.tolist())
    return list(zip(*columns, strict=True))


def call_paths(profile: Profile) -> list[tuple[Any, ...]]:
    """The frames below the root of each node."""
    keys = frame_keys(profile)
    return [
        tuple(keys[profile.tree.frame[above]] for above in profile.tree.path(node)[1:])
        for node in range(len(profile.tree))
    ]


def content(profile: Profile) -> dict[str, Any]:
    """All that a profile says, without the order of rows and without nodes that say nothing."""
    paths = call_paths(profile)
    found: dict[str, Any] = {name: _values(metric, paths) for name, metric in profile.metrics.items()}
    slices = profile.slices
    found["slices"] = Counter(
        zip(
            slices.start_ns.tolist(),
            slices.duration_ns.tolist(),
            [paths[node] for node in slices.node.tolist()],
            [profile.tracks.label(track) for track in slices.track.tolist()],
            (slices.correlation > 0).tolist(),
            strict=True,
        )
    )
    keys = frame_keys(profile)
    found["kernels"] = Counter()
    for frame, count in zip(profile.kernels.frame.tolist(), profile.kernels.count.tolist(), strict=True):
        found["kernels"][keys[frame]] += count
    return found


def _values(metric: Metric, paths: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], float]:
    values: dict[tuple[Any, ...], float] = {}
    combine = {Combine.SUM: lambda one, other: one + other, Combine.MIN: min, Combine.MAX: max}[metric.combine]
    for path, value, is_there in zip(paths, metric.own.tolist(), metric.has_value.tolist(), strict=True):
        if is_there:
            values[path] = combine(values[path], value) if path in values else value
    return values
