from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bragg.formats.perfetto.events import Events
from bragg.formats.perfetto.trace import _outgoing, write
from bragg.formats.timelines.lanes import _nest, _nests, lanes
from bragg.model import FlowTable, SliceTable, TrackKind, TrackTable
from tests.support.profiles import profile_from_text
from tests.support.traces import trace_from_text


def lane_texts(text: str) -> list[str]:
    profile = trace_from_text(text)
    return [
        f"{lane.label(profile.tracks)}: "
        + " ".join(profile.tree.label(int(node)) for node in profile.slices.node[lane.rows])
        for lane in lanes(profile)
    ]


def test_slices_that_nest_share_a_lane() -> None:
    assert lane_texts("""
        thread 1
          0-10 outer
          2-4 inner
          4-9 next
          10-12 after""") == ["thread 1: outer inner next after"]


def test_a_slice_that_overlaps_another_gets_a_lane_of_its_own() -> None:
    assert lane_texts("""
        stream 7
          0-10 a
          5-15 b
          10-12 c
          11-13 d""") == ["stream 7: a c", "stream 7 (2): b d"]


def test_tracks_without_slices_have_no_lane() -> None:
    assert lane_texts("""
        thread 1
        stream 7
          0-10 a""") == ["stream 7: a"]


def events_of(*spans: tuple[int, int]) -> list[tuple[int, str, int]]:
    """(time, begin or end, slice) of slices given as (start, duration)."""
    start, duration = np.array(spans, np.int64).T
    zero = np.zeros(len(start), np.int32)
    ordered = SliceTable(start, duration, zero, zero, zero.astype(np.int64)).sorted()
    events = Events(ordered.start_ns, ordered.duration_ns)
    assert np.cumsum(events.delta_ns).tolist() == (events.time_ns - events.time_ns[0]).tolist()
    words = np.where(events.is_end, "end", "begin")
    return list(zip(events.time_ns.tolist(), words.tolist(), events.row.tolist(), strict=True))


def test_an_inner_slice_begins_after_and_ends_before_the_outer_one() -> None:
    assert events_of((0, 10), (0, 4), (8, 2)) == [
        (0, "begin", 0),
        (0, "begin", 1),
        (4, "end", 1),
        (8, "begin", 2),
        (10, "end", 2),
        (10, "end", 0),
    ]


def test_a_slice_ends_before_the_next_begins_at_the_same_time() -> None:
    assert events_of((0, 5), (5, 5)) == [(0, "begin", 0), (5, "end", 0), (5, "begin", 1), (10, "end", 1)]


def test_an_empty_slice_begins_and_ends_where_it_stands() -> None:
    assert events_of((0, 5), (5, 0), (5, 3)) == [
        (0, "begin", 0),
        (5, "end", 0),
        (5, "begin", 1),
        (5, "begin", 2),
        (5, "end", 2),
        (8, "end", 1),
    ]


def test_every_arrow_that_leaves_a_slice_has_its_id() -> None:
    arrows = _outgoing(FlowTable(np.array([2, 0, 2]), np.array([3, 4, 5])), np.array([1, 2, 3]), 6)
    assert [ids.tolist() for ids in arrows] == [[2, 0, 1, 0, 0, 0], [0, 0, 3, 0, 0, 0]]


@pytest.mark.parametrize(("kind", "n_paths"), [(TrackKind.GPU_STREAM, 1), (TrackKind.HOST_THREAD, 0)])
def test_call_path_of_a_kernel_is_written_without_its_middle(tmp_path: Path, kind: TrackKind, n_paths: int) -> None:
    callers = "".join(f"{'  ' * depth}f{depth}.py:1@f{depth}\n" for depth in range(1, 41))
    profile = profile_from_text(f"root\n{callers}{'  ' * 41}k 5ns")
    slices = SliceTable(*(np.array([value]) for value in (1_000, 5, len(profile.tree) - 1, 0, 0)))
    one = np.zeros(1, np.int64)
    tracks = TrackTable(np.array([kind], np.uint8), one.astype(np.int32), one.astype(np.int32), one, one, [""])
    write(replace(profile, slices=slices, tracks=tracks), tmp_path / "trace")
    content = (tmp_path / "trace").read_bytes()
    path = b"f8.py:1@f8 > ... 16 more ... > f25.py:1@f25 > "
    assert content.count(path) == content.count(b"f40.py:1@f40") == n_paths


def test_one_lane_holds_all_slices_exactly_if_they_nest() -> None:
    random = np.random.default_rng(0)
    seen = set()
    for _ in range(2000):
        count = random.integers(1, 9)
        start, duration = random.integers(0, 12, count), random.integers(0, 8, count)
        order = np.lexsort((-duration, start))
        start, end = start[order], (start + duration)[order]
        open_ends: list[list[int]] = []
        fits = max(_nest(open_ends, *span) for span in zip(start.tolist(), end.tolist(), strict=True)) == 0
        assert _nests(start, end) == fits, (start, end)
        seen.add(fits)
    assert seen == {True, False}
