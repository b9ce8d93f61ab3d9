"""Traces as text, for tests.

    thread 1
      0-10 step
      2-4 cuLaunchKernel ->5
    stream 7
      6-9 matmul <-5

A line without indentation begins a track of process 42: a host thread, or a stream of GPU 0. Below it stand its slices:
start and end in ns, a name, and the correlation id of a launch (`->`) or of what it caused (`<-`).
"""

from __future__ import annotations

import re
from textwrap import dedent

import numpy as np

from bragg.model import CallTree, FrameKind, FrameTable, Metric, MetricKind, Profile, SliceTable, TrackKind, TrackTable

_SLICE = re.compile(r"(\d+)-(\d+) (.+?)(?: (?:->|<-)(\d+))?$")
_TRACK_KINDS = {"thread": TrackKind.HOST_THREAD, "stream": TrackKind.GPU_STREAM}


def trace_from_text(text: str) -> Profile:
    """The profile that a text draws: every name is a node under the root, with its time."""
    tracks: list[str] = []
    rows: list[tuple[int, int, int, int, int]] = []
    nodes = {"root": 0}
    kinds = [FrameKind.ROOT]
    for line in filter(str.strip, dedent(text).splitlines()):
        if not line.startswith(" "):
            tracks.append(line)
            continue
        match = _SLICE.match(line.strip())
        assert match, line
        start, end, name, correlation = match.groups()
        if name not in nodes:
            nodes[name] = len(nodes)
            kinds.append(FrameKind.KERNEL if tracks[-1].startswith("stream") else FrameKind.SCOPE)
        rows.append((int(start), int(end) - int(start), nodes[name], len(tracks) - 1, int(correlation or 0)))
    profile = _profile(tracks, list(nodes), kinds, SliceTable(*np.array(rows, np.int64).T).sorted())
    profile.check()
    return profile


def _profile(labels: list[str], names: list[str], kinds: list[FrameKind], slices: SliceTable) -> Profile:
    n_nodes = len(names)
    kind = np.array(kinds, np.uint8)
    device = np.where(kind == FrameKind.KERNEL, 0, -1).astype(np.int32)
    frames = FrameTable(kind, names, [""] * n_nodes, np.zeros(n_nodes, np.int32), device)
    parent = np.where(np.arange(n_nodes) == 0, -1, 0).astype(np.int32)
    metrics = {}
    for name, is_device in (("gpu_time", True), ("host_time", False)):
        own = np.zeros(n_nodes, np.int64)
        rows = (kind[slices.node] == FrameKind.KERNEL) == is_device
        np.add.at(own, slices.node[rows], slices.duration_ns[rows])
        metrics[name] = Metric(name, "ns", MetricKind.INCLUSIVE, own)
    words = [label.split() for label in labels]
    track_kind = np.array([_TRACK_KINDS[kind_name] for kind_name, _ in words], np.uint8)
    tracks = TrackTable(
        kind=track_kind,
        process=np.full(len(labels), 42, np.int32),
        device=np.where(track_kind == TrackKind.GPU_STREAM, 0, -1).astype(np.int32),
        context=np.zeros(len(labels), np.int64),
        stream=np.array([int(number) for _, number in words], np.int64),
        name=labels,
    )
    return Profile({"pid": 42}, CallTree(parent, np.arange(n_nodes, dtype=np.int32), frames), metrics, tracks, slices)
