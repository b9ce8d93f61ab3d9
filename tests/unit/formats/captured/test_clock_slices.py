"""Blocks and warps of launches with clocks, as tracks of the timeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bragg.formats import capture
from bragg.formats.captured.chunks import ChunkType
from bragg.formats.chrome import trace
from bragg.formats.perfetto import trace as perfetto
from bragg.model import FrameKind, Profile, TrackKind
from tests.support.captures import NONE, CaptureBuilder

TOLD = {
    "span_ns": 180,
    "block": [0, 1, 2, 3],
    "multiprocessor": [5, 7, 5, 7],
    "start_ns": [0, 10, 60, 90],
    "duration_ns": [50, 70, 120, 60],
    "warps": [[0, 0, 5], [0, 1, 5]],
    "names": [["wait for other warps", "/src/sum.py", 12], ["stores to global memory", "", 0]],
    "warp": [0, 1, 0],
    "segment": [0, 0, 1],
    "passage_start_ns": [5, 6, 30],
    "passage_ns": [10, 12, 8],
}


def launched(told: Any) -> CaptureBuilder:
    """Two launches with clocks, the later one of 200 ns."""
    builder = CaptureBuilder().meta(
        pid=42, inside_kernels=[{"kernel": "sum<w4>", "level": "everything", "timeline": told}]
    )
    builder.strings("root", "sum<w4> (with clocks)", "GPU 0 stream 7")
    builder.rows(ChunkType.FRAMES, (FrameKind.ROOT, 0, NONE, 0, NONE), (FrameKind.KERNEL, 1, NONE, 0, 0))
    builder.rows(ChunkType.NODES, (NONE, 0), (0, 1))
    builder.rows(ChunkType.TRACKS, (TrackKind.GPU_STREAM, 0, 1, 7, 2))
    builder.rows(ChunkType.SLICES, (5000, 200, 1, 0, 1), (1000, 300, 1, 0, 2))
    return builder.end()


def read(folder: Path, told: Any) -> Profile:
    profile = capture.read(launched(told).write(folder / "run.part"))
    profile.check()
    return profile


def slices_of(profile: Profile) -> dict[str, list[tuple[str, int, int]]]:
    found: dict[str, list[tuple[str, int, int]]] = {}
    slices = profile.slices
    for track, node, start_ns, duration_ns in zip(
        slices.track.tolist(), slices.node.tolist(), slices.start_ns.tolist(), slices.duration_ns.tolist(), strict=True
    ):
        found.setdefault(profile.tracks.label(track), []).append((profile.tree.label(node), start_ns, duration_ns))
    return found


def test_events_that_overlap_have_tracks_of_their_own(tmp_path: Path) -> None:
    events = {
        "event_names": [["copy = 0", "/src/sum.py", 12], ["copy = 1", "", 0]],
        "event": [0, 1, 0],
        "event_block": [0, 0, 0],
        "event_multiprocessor": [5, 5, 5],
        "event_start_ns": [5, 10, 30],
        "event_ns": [20, 40, 8],
    }
    found = slices_of(read(tmp_path, TOLD | events))
    assert found["SM 5, block 0, events"] == [("copy = 0 (sum.py:12)", 5015, 20), ("copy = 0 (sum.py:12)", 5040, 8)]
    assert found["SM 5, block 0, events (2)"] == [("copy = 1", 5020, 40)]
    for broken in (
        {"event": [0, 1, 2]},
        {"event_ns": [1]},
        {"event_names": [["copy", 1, 2]]},
        {"event_block": ["a"] * 3},
    ):
        assert "SM 5, block 0, events" not in slices_of(read(tmp_path, TOLD | events | broken))


def test_blocks_stand_on_their_multiprocessors_within_the_last_launch(tmp_path: Path) -> None:
    profile = read(tmp_path, TOLD)
    found = slices_of(profile)
    assert found["SM 5"] == [("block 0", 5010, 50), ("block 2", 5070, 120)]
    assert found["SM 7"] == [("block 1", 5020, 70), ("block 3", 5100, 60)]
    assert found["SM 5, block 0, warp 1"] == [("wait for other warps (sum.py:12)", 5016, 12)]
    assert [start for _, start, _ in found["SM 5, block 0, warp 0"]] == [5015, 5040]
    assert set(profile.tracks.kind.tolist()) == {TrackKind.GPU_STREAM, TrackKind.DEVICE_UNIT}
    assert set(profile.tracks.device.tolist()) == {0}
    (row,) = profile.meta["inside_kernels"]
    assert "timeline" not in row


def test_blocks_that_share_a_multiprocessor_stand_beside_each_other(tmp_path: Path) -> None:
    profile = read(tmp_path, {**TOLD, "multiprocessor": [5, 5, 5, 5], "start_ns": [0, 10, 50, 60]})
    found = slices_of(profile)
    assert [name for name, _, _ in found["SM 5"]] == ["block 0", "block 2"]
    assert [name for name, _, _ in found["SM 5 (2)"]] == ["block 1"]
    assert [name for name, _, _ in found["SM 5 (3)"]] == ["block 3"]


def test_they_are_in_exported_timelines(tmp_path: Path) -> None:
    profile = read(tmp_path, TOLD)
    trace.write(profile, tmp_path / "run.json")
    assert '"name": "SM 5, block 0, warp 1"' in (tmp_path / "run.json").read_text()
    perfetto.write(profile, tmp_path / "run.pftrace")
    assert b"SM 5, block 0, warp 1" in (tmp_path / "run.pftrace").read_bytes()


def test_blocks_of_large_grids_share_names(tmp_path: Path) -> None:
    n = 5000
    same = {"block": [*range(n)], "multiprocessor": [0] * n, "start_ns": [*range(n)], "duration_ns": [1] * n}
    profile = read(tmp_path, {**TOLD, **same})
    names = [name for name, _, _ in slices_of(profile)["SM 0"]]
    assert (len(names), names[0], names[-1]) == (n, "blocks 0 to 4", "blocks 4995 to 4999")
    assert len(set(names)) == 1000


@pytest.mark.parametrize(
    "told",
    [
        7,
        {},
        {**TOLD, "block": [1], "warp": []},
        {**TOLD, "block": [0, 1, 2, "3"], "warp": [0, 1, 2]},
        {**TOLD, "start_ns": [0, -1, 2, 3], "segment": [0, 0, 2]},
        {**TOLD, "start_ns": [0, 1, 2, 2**70], "names": [["x", "", -1], ["y", "", 0]]},
        {**TOLD, "duration_ns": [0, 1, 2, 2**60], "warps": [[0, 0], "x"]},
        {**TOLD, "duration_ns": [True, 1, 2, 3], "names": 3},
    ],
)
def test_what_anybody_may_have_written_is_read_without_trust(tmp_path: Path, told: Any) -> None:
    assert set(slices_of(read(tmp_path, told))) == {"GPU 0 stream 7"}


def test_without_a_launch_on_the_timeline_there_are_no_tracks(tmp_path: Path) -> None:
    builder = launched(TOLD).meta(inside_kernels=[{"kernel": "other", "timeline": TOLD}])
    profile = capture.read(builder.write(tmp_path / "run.part"))
    assert set(slices_of(profile)) == {"GPU 0 stream 7"}
    assert "timeline" not in profile.meta["inside_kernels"][0]
