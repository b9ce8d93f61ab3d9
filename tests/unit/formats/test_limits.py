"""Files that ask for much more than their size: refused in one line, before the memory or the work is spent."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bragg import formats
from bragg.errors import BadFile
from bragg.formats import limits
from bragg.formats.captured import chunks
from bragg.formats.limits import MAX_DEPTH, Limits, TooLargeError
from bragg.formats.timelines.call_tree import Nodes
from bragg.model import FrameKind, Metric, MetricKind
from tests.support.captures import NONE, CaptureBuilder, small_capture, table_chunk
from tests.support.nsys_database import write_database
from tests.support.profiles import profile_from_text

MB = 1 << 20


@pytest.fixture
def no_floors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files are held to the same measure as large ones, so that tests need no large ones."""
    monkeypatch.setattr(limits, "_LEAST_MEMORY_BYTES", MB)
    monkeypatch.setattr(limits, "_LEAST_CONTENT_BYTES", MB)
    monkeypatch.setattr(limits, "_LEAST_ROWS", 1000)
    monkeypatch.setattr(limits, "_LEAST_VALUES", 1000)


@pytest.fixture
def members(tmp_path: Path) -> dict[str, bytes]:
    """Of a whole profile with a timeline."""
    path = tmp_path / "whole.bragg"
    formats.finish(small_capture().write(tmp_path / "run.part"), path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(members: dict[str, bytes], path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def changed_header(members: dict[str, bytes], change: Callable[[dict[str, Any]], None]) -> dict[str, bytes]:
    header = json.loads(members["meta.json"])
    change(header)
    return {**members, "meta.json": json.dumps(header).encode()}


def npy(dtype: str, count: int, data: bytes) -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({count},), }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


@pytest.mark.usefixtures("no_floors")
@pytest.mark.parametrize(
    ("member", "content"),
    [
        ("nodes/parent.npy", npy("<i4", 8 * MB, bytes(32 * MB))),
        ("meta.json", b'{"version":[1,2],"x":"' + b"a" * 32 * MB),
        ("meta.json", b"[" + b"[]," * 8 * MB + b"[]]"),
        ("frames/name.json", b"[" + b"[]," * 8 * MB + b"[]]"),
    ],
    ids=["column", "text", "values", "values among names"],
)
def test_zip_bomb_is_refused_by_what_it_declares(
    member: str, content: bytes, members: dict[str, bytes], tmp_path: Path
) -> None:
    path = archive_of({**members, member: content}, tmp_path / "bomb.bragg")
    with pytest.raises(BadFile, match=r"over [\d,]+ MB of memory, too much for a file of its size"):
        formats.load(path)


def test_a_profile_that_is_as_large_as_it_says_is_read(members: dict[str, bytes], tmp_path: Path) -> None:
    assert len(formats.load(archive_of(members, tmp_path / "run.bragg")).slices) == 5


def test_metric_that_is_there_many_times_is_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    many = changed_header(members, lambda header: header.update(metrics=header["metrics"] * 1000))
    with pytest.raises(BadFile, match="a metric is there twice"):
        formats.load(archive_of(many, tmp_path / "many.bragg"))


def test_more_blocks_of_slices_than_members_are_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    many = changed_header(members, lambda header: header.update(slice_blocks=[1] * 1000))
    with pytest.raises(BadFile, match="more blocks of slices than members"):
        formats.load(archive_of(many, tmp_path / "many.bragg"))
    huge = changed_header(members, lambda header: header.update(slice_blocks=[10**12]))
    with pytest.raises(BadFile, match="too much for a file of its size"):
        formats.load(archive_of(huge, tmp_path / "huge.bragg"))


def test_block_with_more_slices_than_declared_is_lost(members: dict[str, bytes], tmp_path: Path) -> None:
    content = npy("|u1", 1, b"").replace(b"(1,)", b"(1, 100000)") + bytes(100_000)
    path = archive_of({**members, "slices/0/node.npy": content}, tmp_path / "more.bragg")
    assert formats.load(path).meta["lost"] == {"slice_blocks": 1, "slices": 5}


def test_call_paths_of_any_file_are_bounded(members: dict[str, bytes], tmp_path: Path) -> None:
    n = MAX_DEPTH + 2
    chain = np.arange(-1, n - 1, dtype=np.int32)
    deep = {
        **members,
        "nodes/parent.npy": npy("<i4", n, chain.tobytes()),
        "nodes/frame.npy": npy("<i4", n, bytes(4 * n)),
    }
    events = [{"ph": "X", "name": "f", "ts": i, "dur": 4 * n - 2 * i, "pid": 1, "tid": 1} for i in range(n)]
    capture = small_capture()
    capture.add(table_chunk(chunks.ChunkType.NODES, {"parent": np.arange(3, n), "frame": np.ones(n - 3)}, 4))
    stack = {"shared": {"frames": [{"name": "f"}]}, "profiles": [{"type": "sampled", "samples": [[0] * n]}]}
    files = {
        "deep.json": json.dumps({"traceEvents": events}).encode(),
        "deep.speedscope.json": json.dumps(stack).encode(),
        "deep.hatchet": b'[{"frame":{"name":"f"},"metrics":{},"children":' * n + b"[]" + b"}]" * n,
        "deep.part": capture.content(),
        "deep.bragg": archive_of(deep, tmp_path / "whole.bragg").read_bytes(),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadFile, match="call paths are deeper than 50,000"):
            formats.load(tmp_path / name)


@pytest.mark.usefixtures("no_floors")
def test_gzip_bomb_is_refused_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents":[' + b" " * 4 * MB))
    with pytest.raises(BadFile, match="it holds over 1 MB, too much for a file of its size") as caught:
        formats.load(path)
    assert "gzip -d" in caught.value.hint


@pytest.mark.usefixtures("no_floors")
@pytest.mark.parametrize("content", [b"\x0a\x00", b"\x32\x00", b"\x12\x02\x0a\x00"])
def test_pprof_of_empty_fields_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "profile.pb.gz"
    path.write_bytes(gzip.compress(b"\x0a\x00\x32\x00" + content * 100_000))
    with pytest.raises(BadFile, match="too many for a file of its size"):
        formats.load(path)


@pytest.mark.usefixtures("no_floors")
def test_trace_of_more_events_than_can_be_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents":[' + b'{"ph":"i"},' * 50_000 + b"{}]}"))
    with pytest.raises(BadFile, match=r"over [\d,]+ events or fields, too many for a file of its size"):
        formats.load(path)


def test_values_beside_the_events_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    members = ",".join(f'"{i}":"{"a" * MB}"' for i in range(20))
    path.write_bytes(gzip.compress(b'{"traceEvents":[{"ph":"X"}],' + members.encode() + b"}", 1))
    with pytest.raises(BadFile, match="values beside traceEvents have more than 16,777,216 characters"):
        formats.load(path)


def test_pipes_and_devices_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(BadFile, match="it is not a regular file"):
            formats.load(path)


def test_ids_of_a_capture_skip_no_more_rows_than_were_lost() -> None:
    from bragg.formats.captured.tables import IdColumns

    table = IdColumns()
    assert table.fits(10, max_lost=10)
    table.add(10, 1, {})
    assert not table.fits(21, max_lost=10)
    assert table.fits(11, max_lost=10)


def test_search_behind_damage_takes_no_square_of_the_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_LEAST_SEARCH_BYTES", MB)
    n_checked = 0
    original = zlib.crc32

    def counted(content: Any) -> int:
        nonlocal n_checked
        n_checked += len(content)
        return original(content)

    monkeypatch.setattr(chunks, "crc32", counted)
    n = 4000
    headers = []
    for i in range(n):
        head = struct.pack("<4sHHIII", b"CHNK", 2, 0, 0, 24 * (n - i - 1) // 8 * 8, 1)
        headers.append(head + struct.pack("<I", original(head)))
    path = tmp_path / "nested.part"
    path.write_bytes(small_capture().content() + b"".join(headers))
    assert formats.load(path).meta["capture"]["damaged_chunks"] == 1
    assert n_checked < 4 * MB  # of 192


def test_metrics_of_a_capture_are_bounded_by_its_call_paths(tmp_path: Path) -> None:
    n = 30_000
    builder = CaptureBuilder().meta(pid=1).strings("root", "f")
    builder.rows(chunks.ChunkType.FRAMES, (FrameKind.ROOT, 0, NONE, 0, NONE), (FrameKind.SCOPE, 1, NONE, 0, NONE))
    parent, frame = np.zeros(n), np.ones(n)
    parent[0], frame[0] = NONE, 0
    builder.add(table_chunk(chunks.ChunkType.NODES, {"parent": parent, "frame": frame}))
    builder.rows(chunks.ChunkType.METRIC_NAMES, (1, 1, 0, 0))
    columns = {"node": np.ones(n), "index": np.arange(n), "length": np.full(n, n), "count": np.ones(n)}
    builder.add(table_chunk(chunks.ChunkType.VALUES, columns))
    with pytest.raises(BadFile, match=r"it has over 10,000 metrics"):
        formats.load(builder.end().write(tmp_path / "many.part"))
    with pytest.raises(TooLargeError, match="9,000 metrics of 30,000 call paths"):
        Limits(1 << 20).check_metrics(9_000, 30_000)


def test_open_frames_are_not_walked_at_each_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n, n_steps = 2000, 0
    child = Nodes.child

    def counted(nodes: Nodes, parent: int, frame: int) -> int:
        nonlocal n_steps
        n_steps += 1
        return child(nodes, parent, frame)

    monkeypatch.setattr(Nodes, "child", counted)
    opened = [{"type": "O", "at": i, "frame": 0} for i in range(n)]
    closed = [{"type": "C", "at": n + i, "frame": 0} for i in range(n)]
    part = {"type": "evented", "unit": "nanoseconds", "name": "t", "events": opened + closed}
    path = tmp_path / "deep.speedscope.json"
    path.write_text(json.dumps({"shared": {"frames": [{"name": "f"}]}, "profiles": [part]}))
    profile = formats.load(path)
    assert len(profile.slices) == n
    assert int(profile.slices.duration_ns.max()) == 2 * n - 1
    assert n_steps == n


@pytest.mark.usefixtures("no_floors")
def test_database_with_more_rows_or_text_than_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_database(tmp_path / "report.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany("INSERT INTO StringIds VALUES (?, ?)", [(100 + i, "") for i in range(20_000)])
        connection.commit()
    monkeypatch.setattr(limits, "_BYTES_A_ROW", 1000)
    with pytest.raises(BadFile, match="too many for a file of its size"):
        formats.load(path)
    monkeypatch.undo()
    monkeypatch.setattr(Limits, "memory_bytes", 1000)
    with pytest.raises(BadFile, match="memory, too much for a file of its size"):
        formats.load(path)


def test_too_many_metrics_of_proton_are_refused(tmp_path: Path) -> None:
    children = [{"frame": {"name": f"{i}"}, "metrics": {f"m{i}": 1}, "children": []} for i in range(10_001)]
    path = tmp_path / "many.hatchet"
    path.write_text(json.dumps([{"frame": {"name": "ROOT"}, "metrics": {}, "children": children}]))
    with pytest.raises(BadFile, match="over 10,000 metrics"):
        formats.load(path)


def test_large_honest_profile_is_far_from_its_limits(tmp_path: Path) -> None:
    """A wide tree whose columns compress well, as those of a real one do."""
    profile = profile_from_text("root\n" + "\n".join(f"  scope {i}\n    kernel 1us" for i in range(20_000)))
    empty = {name: Metric(name, "1", MetricKind.INCLUSIVE, np.zeros(len(profile.tree))) for name in map(str, range(60))}
    path = tmp_path / "wide.bragg"
    formats.export(replace(profile, metrics={**profile.metrics, **empty}), "bragg", path)
    assert len(formats.load(path).tree) == 40_001
