from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from bragg.errors import BadFile, NothingRecorded
from bragg.formats import capture, finish
from bragg.formats.captured.chunks import ChunkType
from bragg.model import FrameKind, Profile
from tests.support.captures import (
    DEVICE,
    HOST,
    MARKER,
    NONE,
    SAMPLE,
    WAIT,
    CaptureBuilder,
    chunk,
    small_capture,
    table_chunk,
)
from tests.support.profiles import tree_to_text


def read(builder: CaptureBuilder, folder: Path, **options: bool) -> Profile:
    profile = capture.read(builder.write(folder / "run.part"), **options)
    profile.check()
    return profile


def test_the_tree_its_metrics_and_meta_are_read(tmp_path: Path) -> None:
    profile = read(small_capture(), tmp_path)
    assert tree_to_text(profile) == ("root\n  train host=900ns hostx1\n    cuLaunchKernel\n      matmul 300ns x2")
    assert profile.meta == {
        "pid": 42,
        "program": "train.py",
        "exit_code": 0,
        "capture": {"complete": True, "damaged_chunks": 0, "bytes_lost": 0},
    }
    assert profile.tree.frames.device.tolist() == [-1, -1, -1, 0]


def test_of_cumulative_rows_the_last_counts(tmp_path: Path) -> None:
    profile = read(small_capture(), tmp_path)
    assert profile.own("gpu_count").tolist() == [0, 0, 0, 2]
    assert profile.own("gpu_time_min")[3] == 100
    assert profile.own("gpu_time_max")[3] == 200
    assert profile.kernels.count.tolist() == [2]
    assert profile.kernels.registers.tolist() == [32]


def test_of_more_cumulative_rows_than_are_kept_at_once_the_last_count_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bragg.formats.captured.tables._ROWS_AT_ONCE", 2)
    builder = small_capture()
    for count in range(3, 9):
        builder.rows(ChunkType.METRICS, (3, DEVICE, count, count * 100, 90, 200, 0))
    builder.rows(ChunkType.METRICS, (1, DEVICE, 1, 7, 7, 7, 0))
    profile = read(builder, tmp_path)
    assert profile.own("gpu_count").tolist() == [0, 1, 0, 8]
    assert profile.own("gpu_time").tolist() == [0, 7, 0, 800]


def test_slices_are_ordered_by_track_and_start_and_launches_point_at_kernels(tmp_path: Path) -> None:
    profile = read(small_capture(), tmp_path)
    assert profile.slices.start_ns.tolist() == [1000, 1100, 1200, 1300, 1600]
    assert profile.slices.track.tolist() == [0, 0, 0, 1, 1]
    assert profile.flows.source.tolist() == [1, 2]
    assert profile.flows.target.tolist() == [3, 4]
    assert [profile.tracks.label(track) for track in range(2)] == ["main", "GPU 0 stream 13"]
    assert profile.tracks.process.tolist() == [42, 42]
    assert profile.tracks.device.tolist() == [-1, 0]
    assert profile.tracks.context.tolist() == [0, 1]


def test_the_trace_can_be_left_out(tmp_path: Path) -> None:
    profile = read(small_capture(), tmp_path, trace=False)
    assert len(profile.slices) == 0
    assert profile.total("gpu_time") == 300


def test_frames_of_the_recorder_are_no_part_of_a_call_path(tmp_path: Path) -> None:
    builder = (
        CaptureBuilder()
        .meta(recorder_directory="/site/bragg")
        .strings("root", "main", "a.py", "call", "/site/bragg/scope.py", "matmul", "/site/bragg_user.py")
    )
    python, kernel = int(FrameKind.PYTHON), int(FrameKind.KERNEL)
    builder.rows(ChunkType.FRAMES, (0, 0, NONE, 0, NONE), (python, 1, 2, 3, NONE), (python, 3, 4, 5, NONE))
    builder.rows(ChunkType.FRAMES, (python, 3, 6, 7, NONE), (kernel, 5, NONE, 0, 0))
    builder.rows(ChunkType.NODES, (NONE, 0), (0, 1), (1, 2), (2, 3), (3, 4), (2, 4))
    builder.rows(ChunkType.METRICS, (4, DEVICE, 1, 7, 7, 7, 0), (5, DEVICE, 1, 2, 2, 2, 0))
    profile = read(builder, tmp_path)
    assert [profile.tree.frames.name[frame] for frame in profile.tree.frame] == [
        "root",
        "main",
        "call",
        "matmul",
        "matmul",
    ]
    assert profile.tree.parent.tolist() == [-1, 0, 1, 1, 2]
    assert profile.own("gpu_time").tolist() == [0, 0, 0, 2, 7]


def test_what_begins_and_ends_a_recording_takes_no_time_of_the_program(tmp_path: Path) -> None:
    builder = (
        CaptureBuilder()
        .meta(recorder_directory="/site/bragg")
        .strings("root", "main", "a.py", "__exit__", "contextlib.py", "_block", "/site/bragg/record/inside/sessions.py")
        .strings("dumps", "json.py")
    )
    python = int(FrameKind.PYTHON)
    builder.rows(ChunkType.FRAMES, (0, 0, NONE, 0, NONE), (python, 1, 2, 3, NONE), (python, 3, 4, 144, NONE))
    builder.rows(ChunkType.FRAMES, (python, 5, 6, 168, NONE), (python, 7, 8, 1, NONE))
    builder.rows(ChunkType.NODES, (NONE, 0), (0, 1), (1, 2), (2, 3), (3, 4))
    builder.rows(ChunkType.METRICS, *((node, SAMPLE, 1, node * 10, 10, 10, 0) for node in (1, 3, 4)))
    builder.rows(ChunkType.TRACKS, (6, NONE, NONE, 7, 1))
    builder.rows(ChunkType.SLICES, (5, 10, 1, 0, 0), (20, 30, 3, 0, 0), (20, 30, 4, 0, 0))
    profile = read(builder, tmp_path)
    assert tree_to_text(profile) == "root\n  a.py:3@main host=10ns"
    assert profile.slices.start_ns.tolist() == [5]


def test_nodes_without_data_are_pruned_but_not_those_with_slices(tmp_path: Path) -> None:
    builder = CaptureBuilder().strings("root", "only a slice", "nothing")
    builder.rows(ChunkType.FRAMES, (0, 0, NONE, 0, NONE), (1, 1, NONE, 0, NONE), (1, 2, NONE, 0, NONE))
    builder.rows(ChunkType.NODES, (NONE, 0), (0, 1), (0, 2))
    builder.rows(ChunkType.TRACKS, (1, NONE, NONE, 7, 1)).rows(ChunkType.SLICES, (5, 3, 1, 0, 0))
    assert tree_to_text(read(builder, tmp_path)) == "root\n  only a slice"


def test_host_metrics_come_from_what_was_measured_and_sampled(tmp_path: Path) -> None:
    builder = CaptureBuilder().strings("root", "step", "f", "train.py")
    builder.rows(
        ChunkType.FRAMES, (0, 0, NONE, 0, NONE), (FrameKind.SCOPE, 1, NONE, 0, NONE), (FrameKind.PYTHON, 2, 3, 12, NONE)
    )
    builder.rows(ChunkType.NODES, (NONE, 0), (0, 1), (1, 2))
    builder.rows(ChunkType.METRICS, (1, HOST, 3, 1000, 1, 900, 0), (2, SAMPLE, 4, 400, 100, 100, 0))
    profile = read(builder, tmp_path)
    assert tree_to_text(profile) == "root\n  step host=600ns hostx3\n    train.py:12@f host=400ns"
    assert profile.own("samples").tolist() == [0, 0, 4]
    assert "gpu_time" not in profile.metrics


def test_marker_times_are_no_host_time(tmp_path: Path) -> None:
    builder = CaptureBuilder().strings("root", "step", "request", "color", "#76b900", "ranges")
    builder.rows(
        ChunkType.FRAMES,
        (0, 0, NONE, 0, NONE),
        (FrameKind.SCOPE, 1, NONE, 0, NONE),
        (FrameKind.MARKER, 2, NONE, 0, NONE),
    )
    builder.rows(ChunkType.NODES, (NONE, 0), (0, 1), (1, 2))
    builder.rows(ChunkType.METRICS, (1, HOST, 1, 1000, 1000, 1000, 0), (2, MARKER, 2, 5000, 1000, 4000, 0))
    builder.rows(ChunkType.TRACKS, (4, NONE, NONE, 0, 5)).rows(ChunkType.SLICES, (10, 4000, 2, 0, 0))
    builder.rows(ChunkType.ATTRIBUTES, (2, 3, 4), (2, 3, 1), (2, 99, 4))
    profile = read(builder, tmp_path)
    assert profile.inclusive("host_time").tolist() == [1000, 1000, 0]
    assert profile.own("marker_time").tolist() == [0, 0, 5000]
    assert profile.own("marker_count").tolist() == [0, 0, 2]
    assert profile.tracks.label(0) == "ranges"
    assert profile.meta["attributes"] == {"request": {"color": "#76b900"}}


def test_calls_that_wait_are_a_part_of_the_host_time_which_samples_do_not_add_to(tmp_path: Path) -> None:
    builder = CaptureBuilder().strings("root", "train.py", "step", "cudaFree", "cudaMalloc")
    builder.rows(
        ChunkType.FRAMES,
        (0, 0, NONE, 0, NONE),
        (FrameKind.PYTHON, 2, 1, 12, NONE),
        (FrameKind.GPU_API, 3, NONE, 0, NONE),
        (FrameKind.GPU_API, 4, NONE, 0, NONE),
    )
    builder.rows(ChunkType.NODES, (NONE, 0), (0, 1), (1, 2), (1, 3))
    builder.rows(
        ChunkType.METRICS,
        *((1, SAMPLE, 9, 900, 100, 100, 0), (2, HOST, 2, 600, 200, 400, 0)),
        *((2, WAIT, 2, 600, 200, 400, 0), (3, HOST, 1, 100, 100, 100, 0)),
    )
    profile = read(builder, tmp_path)
    assert profile.own("host_time").tolist() == [0, 200, 600, 100]
    assert profile.inclusive("sync_time").tolist() == [600, 600, 600, 0]


def test_blocks_hold_all_slices_whatever_the_size_of_chunks(tmp_path: Path) -> None:
    recording = capture.open_capture(small_capture().write(tmp_path / "run.part"))
    for rows in (1, 2, 3, 100):
        blocks = list(recording.slice_blocks(rows))
        assert max(map(len, blocks)) <= rows + 2
        assert np.concatenate([block.start_ns for block in blocks]).tolist() == [1000, 1100, 1300, 1200, 1600]


def test_a_killed_process_leaves_an_incomplete_capture(tmp_path: Path) -> None:
    builder = small_capture()
    del builder.chunks[-2:]
    profile = read(builder, tmp_path)
    assert profile.meta["capture"] == {"complete": False, "damaged_chunks": 0, "bytes_lost": 0}
    assert profile.total("gpu_time") == 300


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_a_capture_that_is_being_written_is_of_a_run_that_continues(tmp_path: Path) -> None:
    builder = small_capture()
    del builder.chunks[-1]
    path = builder.write(tmp_path / f"{os.getpid()}.part")
    with path.open("ab"):
        assert capture.read(path).run.is_running
        assert not capture.read(path).run.is_cut_short
        assert not finish(path, tmp_path / "so_far.bragg").run.is_running  # Whoever reads the file later sees its end.
    assert not capture.read(path).run.is_running
    assert capture.read(path).run.is_cut_short


def test_a_complete_capture_that_is_still_open_is_complete(tmp_path: Path) -> None:
    path = small_capture().write(tmp_path / f"{os.getpid()}.part")
    with path.open("ab"):
        assert capture.read(path).meta["capture"]["complete"]
        assert not capture.read(path).run.is_running


@pytest.mark.parametrize("error", [errno.ENOSPC, -1])
def test_why_writing_ended_early_is_told(tmp_path: Path, error: int) -> None:
    builder = small_capture()
    del builder.chunks[-1]
    content = bytearray(builder.content())
    content[12:16] = error.to_bytes(4, "little", signed=True)
    path = tmp_path / "run.part"
    path.write_bytes(content)
    assert capture.read(path).meta["capture"]["write_error"] == os.strerror(error)


def test_a_torn_chunk_at_the_end_is_counted(tmp_path: Path) -> None:
    content = small_capture().content()
    path = tmp_path / "run.part"
    path.write_bytes(content[:-5])
    profile = capture.read(path)
    assert profile.meta["capture"] == {"complete": False, "damaged_chunks": 1, "bytes_lost": 19}


def damaged(index: int) -> CaptureBuilder:
    """A capture with a flipped bit in the payload of one chunk."""
    builder = small_capture()
    content = bytearray(builder.chunks[index])
    content[30] ^= 4
    builder.chunks[index] = bytes(content)
    return builder


def index_of(chunk_type: ChunkType, which: int = 0) -> int:
    types = [int.from_bytes(content[4:6], "little") for content in small_capture().chunks]
    return [index for index, found in enumerate(types) if found == chunk_type][which]


def test_reading_goes_on_after_a_damaged_chunk(tmp_path: Path) -> None:
    profile = read(damaged(index_of(ChunkType.SLICES)), tmp_path)
    assert profile.meta["capture"]["damaged_chunks"] == 1
    assert profile.slices.start_ns.tolist() == [1200, 1300, 1600]
    assert profile.total("gpu_time") == 300


def test_reading_goes_on_after_garbage_of_any_length(tmp_path: Path) -> None:
    builder = small_capture()
    builder.chunks.insert(index_of(ChunkType.SLICES), b"CHNK garbage")
    profile = read(builder, tmp_path)
    assert profile.meta["capture"] == {"complete": True, "damaged_chunks": 1, "bytes_lost": 12}
    assert len(profile.slices) == 5


def test_a_damaged_header_of_a_chunk_is_not_believed(tmp_path: Path) -> None:
    builder = small_capture()
    index = index_of(ChunkType.SLICES)
    content = bytearray(builder.chunks[index])
    content[4] = ChunkType.END
    builder.chunks[index] = bytes(content)
    del builder.chunks[-1]
    profile = read(builder, tmp_path)
    assert profile.meta["capture"]["damaged_chunks"] == 1
    assert not profile.meta["capture"]["complete"]


def test_ids_go_on_after_a_chunk_that_contradicts_the_format(tmp_path: Path) -> None:
    builder = small_capture()
    frames = {"kind": [200, 1], "name": [1, 1], "file": [NONE, NONE], "device": [NONE, NONE]}
    builder.add(table_chunk(ChunkType.FRAMES, frames, first_id=4))
    builder.add(table_chunk(ChunkType.FRAMES, {**frames, "kind": [1, 1]}, first_id=6))
    builder.add(table_chunk(ChunkType.NODES, {"parent": [0], "frame": [6]}, first_id=4))
    builder.rows(ChunkType.METRICS, (4, DEVICE, 1, 5, 5, 5, 0))
    profile = read(builder, tmp_path)
    assert tree_to_text(profile).splitlines()[-1] == "  train 5ns"
    assert "<lost>" not in profile.tree.frames.name


def test_time_on_lost_nodes_is_kept_under_a_node_that_says_so(tmp_path: Path) -> None:
    profile = read(damaged(index_of(ChunkType.NODES)), tmp_path)
    assert tree_to_text(profile) == "<lost>\n  <lost> 300ns x2 host=900ns hostx1"
    assert len(profile.slices) == 5


def test_names_that_were_lost_are_shown_as_lost(tmp_path: Path) -> None:
    profile = read(damaged(index_of(ChunkType.STRINGS)), tmp_path)
    assert set(profile.tree.frames.name) == {"<lost>"}
    assert profile.total("gpu_time") == 300
    assert profile.tracks.name == ["<lost>", "GPU 0 stream 13"]


def test_slices_on_a_lost_track_get_a_track_that_says_so(tmp_path: Path) -> None:
    profile = read(damaged(index_of(ChunkType.TRACKS, 1)), tmp_path)
    assert profile.tracks.name == ["main", "<lost>"]
    assert profile.slices.track.tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    "content",
    [
        table_chunk(ChunkType.NODES, {"parent": [4], "frame": [1]}, first_id=4),
        table_chunk(ChunkType.NODES, {"parent": [0], "frame": [1]}, first_id=2**40),
        table_chunk(ChunkType.FRAMES, {"kind": [200]}, first_id=4),
        table_chunk(ChunkType.TRACKS, {"kind": [7]}, first_id=2),
        table_chunk(ChunkType.METRICS, {"node": [1], "group": [7]}),
        table_chunk(ChunkType.METRICS, {"node": [1], "group": [DEVICE], "count": np.array([2**63], np.uint64)}),
        table_chunk(ChunkType.SLICES, {"start_ns": [2**62], "duration_ns": [2**62]}),
        table_chunk(ChunkType.SLICES, {"start_ns": [-1]}),
        chunk(ChunkType.SLICES, 1000, bytes(16)),
        chunk(ChunkType.STRINGS, 1, bytes(8) + (99).to_bytes(8, "little") + b"short"),
        chunk(ChunkType.STRINGS, 1, b""),
        chunk(ChunkType.META, 1, b"[1]"),
        chunk(ChunkType.META, 1, b"{"),
        chunk(99, 0, b""),
    ],
    ids=str,
)
def test_a_chunk_that_contradicts_the_format_is_counted_as_damaged(content: bytes, tmp_path: Path) -> None:
    builder = small_capture()
    profile = read(builder.add(content), tmp_path)
    assert profile.meta["capture"]["damaged_chunks"] == 1
    assert profile.meta["capture"]["bytes_lost"] > 0 or len(content) == 24
    assert tree_to_text(profile) == tree_to_text(read(small_capture(), tmp_path))


def test_a_capture_without_a_measurement_is_nothing_recorded(tmp_path: Path) -> None:
    for builder in (CaptureBuilder(), CaptureBuilder().meta(pid=3).end()):
        with pytest.raises(NothingRecorded, match=r"run\.part holds no measurement"):
            read(builder, tmp_path)


def test_a_capture_of_a_later_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.part"
    path.write_bytes(b"BRAGGCAP" + (2).to_bytes(4, "little") + bytes(4))
    with pytest.raises(BadFile, match="capture version 2, this bragg reads 1") as error:
        capture.read(path)
    assert error.value.hint == "Update bragg"


@pytest.mark.parametrize("content", [b"", b"BRAGGCAP", b"BRAGGCAP\1\0\0\0", b"no capture at all"])
def test_a_file_without_the_header_of_a_capture_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run.part"
    path.write_bytes(content)
    with pytest.raises(BadFile, match="is not a capture"):
        capture.read(path)
