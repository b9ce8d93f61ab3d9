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
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from bragg.formats.encodings.protobuf import fields, signed
from bragg.formats.files import read_content
from bragg.formats.format import damaged, unknown_format
from bragg.formats.limits import Limits, next_depth
from bragg.formats.perfetto import fields as proto
from bragg.formats.timelines.call_tree import Frames, Nodes, call_tree
from bragg.formats.timelines.metrics import durations_of_slices, gpu_facts, metrics_of_slices
from bragg.model import FrameKind, Profile, SliceTable, TrackKind, TrackTable

__all__ = ["is_perfetto", "read"]

_OF_PACKETS = {proto.CLOCK_SNAPSHOT, proto.TIMESTAMP, proto.SEQUENCE, proto.DEFAULTS, proto.TRACK_DESCRIPTOR}
_FIRST_OWN_CLOCK = 64
_NAME_TEXT = 23  # of an event whose name is not interned
_MAX_PARENTS = 16
_ROWS_A_PACKET = 2  # A packet takes 20 us and eight bytes at least.
_PLACE = re.compile(r"\b(Hostname|Process|Thread|Device|SubDevice|GPU|stream) (\S+)")
_THREAD = re.compile(r"Thread \d+ ?")
_GPU_CALL = re.compile(r"(cu|cuda|hip|ze|zes|cl)[A-Z]\w*$")
_COPY = re.compile(r"mem(ory)?_?(cpy|copy|set|fill|prefetch)", re.IGNORECASE)
_ID_LIMIT = 1 << 31


def is_perfetto(start: bytes) -> bool:
    """Whether content may be a trace: its first fields are packets."""
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
        found = _Trace(limits)
        for number, packet in fields(content):
            if number == proto.PACKET and isinstance(packet, bytes):
                found.add(packet)
        if not found.events:
            raise unknown_format(path)
        profile = _profile(found, trace=trace)
        profile.check()
    except (ValueError, OverflowError) as error:
        raise damaged(path, error, "Write or copy it again") from error
    return profile


@dataclass
class _Sequence:
    """What the packets of one writer refer to.

    Attributes:
        names: Of events, by number.
        track: Of events that name none.
        clock: Of packets that name none.
        times: Of each clock of its own, what is added to its values.
        steps: Those of these clocks that count from packet to packet.
    """

    names: dict[int, str] = field(default_factory=dict)
    track: int = 0
    clock: int = 0
    times: dict[int, int] = field(default_factory=dict)
    steps: set[int] = field(default_factory=set)


class _Trace:
    """Packets, read in the order of the file."""

    def __init__(self, limits: Limits) -> None:
        self.events: dict[int, list[tuple[int, int, str]]] = defaultdict(list)  # by track: time, type, name
        self.tracks: dict[int, tuple[str, int]] = {}  # by track: its text, its parent
        self._limits = limits
        self._sequences: dict[int, _Sequence] = defaultdict(_Sequence)
        self._n_packets = 0

    def add(self, content: bytes) -> None:
        """Read a packet."""
        self._n_packets += 1
        self._limits.check_rows(_ROWS_A_PACKET * self._n_packets)
        packet = dict(fields(content))
        sequence = self._sequences[_number(packet, proto.SEQUENCE)]
        if _number(packet, proto.FLAGS) & proto.STATE_CLEARED:
            sequence.names.clear()
        if proto.INTERNED in packet:
            _add_names(sequence, _bytes(packet, proto.INTERNED))
        if proto.DEFAULTS in packet:
            _set_defaults(sequence, dict(fields(_bytes(packet, proto.DEFAULTS))))
        if proto.CLOCK_SNAPSHOT in packet:
            _set_clocks(sequence, _bytes(packet, proto.CLOCK_SNAPSHOT))
        if proto.TRACK_DESCRIPTOR in packet:
            self._add_track(dict(fields(_bytes(packet, proto.TRACK_DESCRIPTOR))))
        time_ns = _time_ns(sequence, packet)
        if proto.TRACK_EVENT in packet:
            event = dict(fields(_bytes(packet, proto.TRACK_EVENT)))
            kind = _number(event, proto.TYPE)
            if kind in (proto.SLICE_BEGIN, proto.SLICE_END):
                name = _text(event, _NAME_TEXT) or sequence.names.get(_number(event, proto.NAME), "")
                self.events[_number(event, proto.TRACK) or sequence.track].append((time_ns, kind, name))

    def _add_track(self, row: dict[int, int | bytes]) -> None:
        process, thread = (dict(fields(_bytes(row, number))) for number in (proto.PROCESS, proto.THREAD))
        text = _text(row, proto.TRACK_NAME) or _text(process, proto.PROCESS_NAME)
        if process and "Process" not in text:
            text = f"Process {_number(process, proto.PID)} {text}"
        if thread:
            text = f"Thread {_number(thread, 2)} {_text(thread, 5)}"
        self.tracks[_number(row, proto.UUID)] = text, _number(row, proto.PARENT)

    def place(self, track: int) -> str:
        """The texts of a track and of those that it lies in, the outermost first."""
        texts: list[str] = []
        while track in self.tracks and len(texts) < _MAX_PARENTS:
            text, track = self.tracks[track]
            texts.append(text)
        return " > ".join(reversed(texts))


def _add_names(sequence: _Sequence, interned: bytes) -> None:
    for number, value in fields(interned):
        if number == proto.EVENT_NAMES and isinstance(value, bytes):
            row = dict(fields(value))
            sequence.names[_number(row, 1)] = _text(row, 2)


def _set_defaults(sequence: _Sequence, defaults: dict[int, int | bytes]) -> None:
    sequence.clock = _number(defaults, proto.TIMESTAMP_CLOCK) or sequence.clock
    of_events = dict(fields(_bytes(defaults, proto.TRACK_EVENT)))
    sequence.track = _number(of_events, proto.TRACK) or sequence.track


def _set_clocks(sequence: _Sequence, snapshot: bytes) -> None:
    rows = [dict(fields(value)) for number, value in fields(snapshot) if number == 1 and isinstance(value, bytes)]
    known = next((_number(row, 2) for row in rows if _number(row, 1) < _FIRST_OWN_CLOCK), None)
    for row in rows:
        clock = _number(row, 1)
        if clock >= _FIRST_OWN_CLOCK and known is not None:
            is_stepping = bool(_number(row, 3))
            sequence.times[clock] = known if is_stepping else known - _number(row, 2)
            (sequence.steps.add if is_stepping else sequence.steps.discard)(clock)


def _time_ns(sequence: _Sequence, packet: dict[int, int | bytes]) -> int:
    clock = _number(packet, proto.TIMESTAMP_CLOCK) or sequence.clock
    time_ns = sequence.times.get(clock, 0) + _number(packet, proto.TIMESTAMP)
    if clock in sequence.steps and proto.TIMESTAMP in packet:
        sequence.times[clock] = time_ns
    return time_ns


def _profile(found: _Trace, *, trace: bool) -> Profile:
    frames, nodes = Frames(), Nodes()
    tracks = _tracks(found)
    rows: list[tuple[int, int, int, int]] = []
    for row, (kind, device, events) in enumerate(zip(tracks.kind, tracks.device, found.events.values(), strict=True)):
        is_gpu = kind == TrackKind.GPU_STREAM
        for begin_ns, end_ns, name in _slices(events):
            frame = frames.id(_kind_of(name, is_gpu=is_gpu), name, device=int(device))
            rows.append((begin_ns, end_ns - begin_ns, frame, row))
    start_ns, duration_ns, frame_of, track = np.array(rows, np.int64).reshape(-1, 4).T
    slices = SliceTable(
        start_ns, duration_ns, frame_of.astype(np.int32), track.astype(np.int32), np.zeros(len(rows), np.int64)
    )
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


def _tracks(found: _Trace) -> TrackTable:
    """A row for each track that has events, in their order."""
    devices: dict[tuple[str, str, str], int] = {}
    rows = []
    for lane, track in enumerate(found.events):
        place = found.place(track)
        told = dict(_PLACE.findall(place))
        host, process, thread = told.get("Hostname", ""), _id(told.get("Process")), _id(told.get("Thread"))
        name = _THREAD.sub("", place.rpartition(" > ")[2])
        if number := told.get("Device") or told.get("GPU"):
            key = host, number, told.get("SubDevice", "")
            device, stream = devices.setdefault(key, len(devices)), _id(told.get("stream")) or thread
            rows.append((TrackKind.GPU_STREAM, process, device, lane, stream, name, -1, host))
        else:
            rows.append((TrackKind.HOST_THREAD, process, -1, 0, thread if "Thread" in told else lane, name, -1, host))
    columns: Any = zip(*rows, strict=True)
    return TrackTable(*columns)


def _id(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and int(text) < _ID_LIMIT else 0


def _slices(events: list[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Begin, end and name of the slices of a track; those without an end are left out.

    iprof writes ends behind later begins. At equal times what is open ends first; an end that is left over is of a
    slice that takes no time.
    """
    open_: list[tuple[int, str]] = []
    n_empty = 0  # ends whose begin is at the same time, and comes after them
    at_ns = 0
    for time_ns, kind, name in sorted(events, key=lambda event: (event[0], -event[1])):
        if time_ns != at_ns:
            at_ns, n_empty = time_ns, 0
        if kind == proto.SLICE_BEGIN and n_empty:
            n_empty -= 1
            yield time_ns, time_ns, name
        elif kind == proto.SLICE_BEGIN:
            next_depth(len(open_))
            open_.append((time_ns, name))
        elif open_:
            begin_ns, name = open_.pop()
            yield begin_ns, time_ns, name
        else:
            n_empty += 1


def _kind_of(name: str, *, is_gpu: bool) -> FrameKind:
    if is_gpu:
        return FrameKind.MEMORY if _COPY.search(name) else FrameKind.KERNEL
    return FrameKind.GPU_API if _GPU_CALL.match(name) else FrameKind.SCOPE


def _number(row: dict[int, int | bytes], number: int) -> int:
    """A whole number; 0: there is none."""
    value = row.get(number, 0)
    if isinstance(value, bytes):
        return int.from_bytes(value, "little") if len(value) == 8 else 0
    return signed(value)


def _bytes(row: dict[int, int | bytes], number: int) -> bytes:
    value = row.get(number, b"")
    return value if isinstance(value, bytes) else b""


def _text(row: dict[int, int | bytes], number: int) -> str:
    return _bytes(row, number).decode(errors="replace")
