from __future__ import annotations

import numpy as np

from bragg.model import SliceTable, TrackTable
from bragg.model.trace import launch_flows

# Track 0 is a host thread, 1 and 2 are streams of GPU 0.
TRACKS = TrackTable(
    kind=np.array([1, 2, 2]),
    process=np.array([7, 7, 7]),
    device=np.array([-1, 0, 0]),
    context=np.array([0, 1, 1]),
    stream=np.array([70, 13, 14]),
    name=["main", "", ""],
)


def slices(*rows: tuple[int, int, int, int]) -> SliceTable:
    """Slices of (start, duration, track, correlation)."""
    start, duration, track, correlation = np.array(rows, np.int64).reshape(-1, 4).T
    return SliceTable(start, duration, np.zeros(len(start), np.int32), track.astype(np.int32), correlation)


def flows_of(*rows: tuple[int, int, int, int]) -> list[tuple[int, int]]:
    flows = launch_flows(slices(*rows), TRACKS)
    return list(zip(flows.source.tolist(), flows.target.tolist(), strict=True))


def test_a_launch_points_at_its_kernel() -> None:
    assert flows_of((0, 2, 0, 5), (3, 2, 0, 6), (4, 9, 1, 5), (13, 1, 1, 6)) == [(0, 2), (1, 3)]


def test_a_graph_launch_points_at_the_first_kernel_on_each_stream() -> None:
    assert flows_of((0, 2, 0, 5), (4, 1, 1, 5), (5, 1, 1, 5), (4, 1, 2, 5), (6, 1, 2, 5)) == [(0, 1), (0, 3)]


def test_slices_without_a_launch_or_without_an_id_have_no_arrow() -> None:
    assert flows_of((0, 2, 0, 5), (4, 1, 1, 9), (5, 1, 1, 0)) == []
    assert flows_of((0, 2, 0, 0)) == []
    assert flows_of() == []


def test_sorted_puts_the_outer_of_two_slices_first() -> None:
    ordered = slices((5, 1, 0, 1), (5, 9, 0, 2), (0, 3, 1, 3), (1, 1, 0, 4)).sorted()
    assert ordered.correlation.tolist() == [4, 2, 1, 3]


def test_tracks_without_a_name_are_labelled_by_what_they_are() -> None:
    assert [TRACKS.label(track) for track in range(3)] == ["main", "GPU 0 stream 13", "GPU 0 stream 14"]
    assert TRACKS.replace(name=["", "", ""]).label(0) == "thread 70"
