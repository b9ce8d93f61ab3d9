"""Reading traces of Perfetto, such as the `.pftrace` files of THAPI's iprof: slices, on tracks whose names say where.

iprof    Hostname h > Process p > Thread t                            calls of the host
         Hostname h > Process p > Thread t > Device d > SubDevice s   work of a device, at the time of its launch
before   Hostname h | Process p | Device d                            a process, with its threads below
bragg    process > GPU d > GPU d stream s

Other tracks are threads of the host. Counters and arguments are left out.
Sources: protos/perfetto/trace of google/perfetto; xprof/btx_timeline.cpp of argonne-lcf/THAPI.
"""

from __future__ import annotations

import re
from array import array
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from bragg.formats.encodings.protobuf import fields
from bragg.formats.files import read_content
from bragg.formats.format import damaged, unknown_format
from bragg.formats.limits import Limits, next_depth
from bragg.formats.perfetto import fields as proto
from bragg.formats.perfetto.packets import Packets, RawEvents
from bragg.formats.timelines.call_tree import Frames, Nodes, call_tree
from bragg.formats.timelines.metrics import durations_of_slices, gpu_facts, metrics_of_slices
from bragg.model import FrameKind, Profile, SliceTable, TrackKind, TrackTable
from bragg.model.table import Int32Array, Int64Array

_OF_PACKETS = {proto.CLOCK_SNAPSHOT, proto.TIMESTAMP, proto.SEQUENCE, proto.DEFAULTS, proto.TRACK_DESCRIPTOR}
_THREAD = re.compile(r"Thread \d+ ?")
_GPU_CALL = re.compile(r"(cu|cuda|hip|ze|zes|cl)[A-Z]\w*$")
_COPY = re.compile(r"mem(ory)?_?(cpy|copy|set|fill|prefetch)", re.IGNORECASE)
_COMPRESSED_FIRST = re.compile(rb"\x0a[\x80-\xff]{0,4}[\x00-\x7f]\x92\x03[\x80-\xff]{0,4}[\x00-\x7f]\x78")
_ID_LIMIT = 1 << 31


def is_perfetto(start: bytes) -> bool:
    """Whether content may be a trace: its first fields are packets."""
    if _COMPRESSED_FIRST.match(start):  # which may be longer than what is looked at
        return True
    try:
        first = list(islice(fields(start, may_break_off=True), 3))
        packets = [{number for number, _ in fields(value)} for _, value in first if isinstance(value, bytes)]
    except ValueError:
        return False
    return bool(packets) and all(n == proto.PACKET for n, _ in first) and all(each & _OF_PACKETS for each in packets)


def read(path: Path, *, trace: bool = True) -> Profile:
    """Read a trace, compressed with gzip or not.

    Raises:
        BadFile: The file is damaged or too large, or has no slice.
    """
    content, limits = read_content(path), Limits.of(path)
    try:
        found = Packets(content, limits)
        if not found.used_tracks:
            raise unknown_format(path)
        profile = _profile(found, trace=trace)
        profile.check()
    except (ValueError, OverflowError) as error:
        raise damaged(path, error, "Write or copy it again") from error
    return profile


def _profile(found: Packets, *, trace: bool) -> Profile:
    frames, nodes = Frames(), Nodes()
    tracks = _tracks(found)
    start_ns, duration_ns, name, track = _slices(found.events())
    frame = _frames(frames, tracks, list(found.names), name, track)
    slices = SliceTable(start_ns, duration_ns, frame, track.astype(np.int32), np.zeros(len(track), np.int64))
    tree, node = call_tree(frames, nodes, tracks, slices)
    slices = slices.replace(node=node).sorted()
    hosts = sorted({host for host in tracks.host if host})
    meta: dict[str, Any] = {"recorder": "Perfetto", "data": "trace", **({"host": hosts[0]} if len(hosts) == 1 else {})}
    return Profile(
        {**meta, **gpu_facts(tracks, slices)},
        tree,
        metrics_of_slices(tree, tracks, slices),
        tracks,
        slices if trace else SliceTable.empty(),
        durations=durations_of_slices(tree, tracks, slices),
    )


def _tracks(found: Packets) -> TrackTable:
    """A row for each track that has events, in their order."""
    devices: dict[tuple[str, str, str], int] = {}
    rows = []
    for lane, track in enumerate(found.used_tracks):
        text, told = found.place(track)
        host, process, thread = told.get("Hostname", ""), _id(told.get("Process")), _id(told.get("Thread"))
        name = _THREAD.sub("", text.rpartition(" > ")[2])
        rank = _id(told["rank"]) if told.get("rank", "").isdecimal() else -1
        if number := told.get("Device") or told.get("GPU"):
            key = host, number, told.get("SubDevice", "")
            device, stream = devices.setdefault(key, len(devices)), _id(told.get("stream")) or thread
            rows.append((TrackKind.GPU_STREAM, process, device, lane, stream, name, rank, host))
        else:
            rows.append((TrackKind.HOST_THREAD, process, -1, 0, thread if "Thread" in told else lane, name, rank, host))
    columns: Any = zip(*rows, strict=True)
    return TrackTable(*columns)


def _id(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and int(text) < _ID_LIMIT else 0


def _slices(events: RawEvents) -> Int64Array:
    """Begin, duration, name and track of slices, track by track; those without an end are left out: int64 [4, slices].

    iprof writes ends behind later begins. At equal times what is open ends first; an end that is left over is of a
    slice that takes no time.
    """
    order = np.lexsort((events.is_begin, events.time_ns, events.track))
    columns = (column[order].tolist() for column in (events.time_ns, events.is_begin, events.name, events.track))
    found = array("q")
    open_: list[tuple[int, int]] = []
    n_empty = 0  # ends whose begin is at the same time, and comes after them
    at_ns, on = 0, -1
    for time_ns, is_begin, name, track in zip(*columns, strict=True):
        if track != on:
            on, open_, n_empty = track, [], 0
        if time_ns != at_ns:
            at_ns, n_empty = time_ns, 0
        if is_begin and n_empty:
            n_empty -= 1
            found.extend((time_ns, 0, name, track))
        elif is_begin:
            next_depth(len(open_))
            open_.append((time_ns, name))
        elif open_:
            begin_ns, name = open_.pop()
            found.extend((begin_ns, time_ns - begin_ns, name, track))
        else:
            n_empty += 1
    slices: Int64Array = np.array(found).reshape(-1, 4).T
    return slices


def _frames(frames: Frames, tracks: TrackTable, names: list[str], name: Int64Array, track: Int64Array) -> Int32Array:
    """The frame of each slice: int32 [slices]."""
    pairs, place = np.unique(name * len(tracks) + track, return_inverse=True)
    ids = []
    for pair in pairs.tolist():
        called, row = names[pair // len(tracks)], pair % len(tracks)
        is_gpu = bool(tracks.kind[row] == TrackKind.GPU_STREAM)
        ids.append(frames.id(_kind_of(called, is_gpu=is_gpu), called, device=int(tracks.device[row])))
    frame: Int32Array = np.array(ids, np.int32)[place.reshape(-1)]
    return frame


def _kind_of(name: str, *, is_gpu: bool) -> FrameKind:
    if is_gpu:
        return FrameKind.MEMORY if _COPY.search(name) else FrameKind.KERNEL
    return FrameKind.GPU_API if _GPU_CALL.match(name) else FrameKind.SCOPE
