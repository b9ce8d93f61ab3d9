from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from bragg import formats
from bragg.cli.main import main
from bragg.data.sample import sample
from bragg.errors import BadFile
from bragg.formats.encodings.protobuf import fields, message, number
from bragg.formats.perfetto import packets
from bragg.model import FrameKind, Profile, TrackKind
from tests.support.iprof_trace import CALLS, EPOCH_NS, WORK, iprof_trace


def _slices(profile: Profile, kind: TrackKind) -> list[tuple[int, int, str]]:
    on_kind = profile.slices.take(profile.tracks.kind[profile.slices.track] == kind)
    names = [profile.tree.frames.name[frame] for frame in profile.tree.frame[on_kind.node].tolist()]
    return list(zip((on_kind.start_ns - EPOCH_NS).tolist(), on_kind.duration_ns.tolist(), names, strict=True))


@pytest.mark.parametrize("is_old", [False, True])
def test_calls_and_work_of_iprof_are_where_and_when_it_says(tmp_path: Path, is_old: bool) -> None:
    path = tmp_path / "out.pftrace"
    path.write_bytes(iprof_trace(("x1", "x2"), is_old=is_old))
    profile = formats.load(path)
    assert sorted(_slices(profile, TrackKind.HOST_THREAD)) == sorted(CALLS * 2)
    assert sorted(_slices(profile, TrackKind.GPU_STREAM)) == sorted(WORK * 2)
    places = zip(profile.tracks.host, profile.tracks.process.tolist(), profile.tracks.device.tolist(), strict=True)
    assert sorted(places) == [("x1", 4000, -1), ("x1", 4000, 0), ("x2", 4001, -1), ("x2", 4001, 1)]
    assert profile.total("gpu_time") == 2 * 340
    kinds = dict(zip(profile.tree.frames.name, profile.tree.frames.kind.tolist(), strict=True))
    assert kinds["cuLaunchKernel"] == FrameKind.GPU_API
    assert kinds["MPI_Allreduce"] == FrameKind.SCOPE
    inner = profile.tree.frames.name.index("inner")
    (node,) = np.flatnonzero(profile.tree.frame == inner).tolist()
    assert profile.tree.frames.name[profile.tree.frame[profile.tree.parent[node]]] == "cuLaunchKernel"


def test_verbs_take_the_trace_of_a_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "timeline_x1.pftrace"
    path.write_bytes(iprof_trace())
    assert main(["tally", str(path), "--json"]) == 0
    sections = {each["title"]: each["rows"] for each in json.loads(capsys.readouterr().out)["sections"]}
    assert [(row["name"], row["calls"]) for row in sections["device"]] == [("matmul", 1), ("cuMemcpyHtoDAsync_v2", 1)]
    assert main(["view", str(path)]) == 0
    assert "matmul" in capsys.readouterr().out


def test_what_bragg_exports_is_read_with_the_same_slices(tmp_path: Path) -> None:
    profile = sample()
    formats.export(profile, "perfetto", tmp_path / "own.pftrace")
    found = formats.load(tmp_path / "own.pftrace")
    mine, others = (np.sort(each.slices.start_ns) for each in (profile, found))
    np.testing.assert_array_equal(mine, others)
    assert found.slices.duration_ns.sum() == profile.slices.duration_ns.sum()
    assert found.total("gpu_time") == profile.total("gpu_time")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (iprof_trace()[:-3], "breaks off"),
        (message(1, number(8, 7), number(10, 1)) * 3, "unknown format"),
        (message(1, number(10, 1), message(11, b"\xff" * 12)), "a number has too many bytes"),
    ],
)
def test_damage_is_told_in_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "out.pftrace"
    path.write_bytes(content)
    with pytest.raises(BadFile, match=said):
        formats.load(path)


def test_packets_that_are_compressed_together_are_read_in_their_order(tmp_path: Path) -> None:
    whole = iprof_trace(("x1", "x2"))
    packets = [message(1, value) for _, value in fields(whole) if isinstance(value, bytes)]
    parts = [b"".join(packets[:9]), b"".join(packets[9:14]), b"".join(packets[14:])]
    path, mixed = tmp_path / "plain.pftrace", tmp_path / "mixed.pftrace"
    path.write_bytes(whole)
    mixed.write_bytes(b"".join((compressed(parts[0]), parts[1], compressed(parts[2]))))
    plain, found = formats.load(path), formats.load(mixed)
    for name in plain.slices.columns():
        np.testing.assert_array_equal(getattr(found.slices, name), getattr(plain.slices, name))
    assert found.tree.frames.name == plain.tree.frames.name


@pytest.mark.parametrize(
    ("packed", "said"),
    [
        (b"\x78\x9cnothing", "its compressed packets are damaged"),
        (zlib.compress(bytes(80 << 20), 9), "it is over 64 MB when decompressed"),
    ],
)
def test_compressed_packets_that_are_damaged_or_too_large_are_said(tmp_path: Path, packed: bytes, said: str) -> None:
    path = tmp_path / "out.pftrace"
    path.write_bytes(message(1, message(50, packed)))
    with pytest.raises(BadFile, match=said):
        formats.load(path)


def compressed(packets: bytes) -> bytes:
    return message(1, message(50, zlib.compress(packets)))


def test_a_slice_without_an_end_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "out.pftrace"
    begin = number(8, EPOCH_NS + 900) + message(11, number(9, 1), number(11, 3), message(23, b"killed"))
    path.write_bytes(iprof_trace() + message(1, begin))
    assert sorted(_slices(formats.load(path), TrackKind.HOST_THREAD)) == sorted(CALLS)


def test_a_descriptor_that_is_repeated_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    monkeypatch.setattr(packets, "fields", lambda value: read.append(value) or fields(value))
    path = tmp_path / "out.pftrace"
    descriptor = message(1, message(60, number(1, 77), message(2, b"repeated 1,000 times")))
    path.write_bytes(iprof_trace() + descriptor * 1000)
    assert sorted(_slices(formats.load(path), TrackKind.HOST_THREAD)) == sorted(CALLS)
    assert sum(b"repeated" in value for value in read) == 1
