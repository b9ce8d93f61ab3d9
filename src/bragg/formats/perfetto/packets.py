"""Packets of a trace of Perfetto: the begins and ends of slices on its tracks, and what these tracks are called."""

from __future__ import annotations

import re
import zlib
from array import array
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from bragg.formats.encodings.protobuf import fields, signed
from bragg.formats.encodings.protobuf_columns import Column, columns, spans
from bragg.formats.limits import Limits, TooLargeError
from bragg.formats.perfetto import fields as proto
from bragg.model.table import Int64Array

_FIRST_OWN_CLOCK = 64
_NAME_TEXT = 23  # of an event whose name is not interned
_MAX_PARENTS = 16
_ROWS_A_PACKET = 2  # A packet takes 4 us and eight bytes at least.
_PLACE = re.compile(r"\b(Hostname|Process|Thread|Device|SubDevice|GPU|stream|rank) (\S+)")
_STATE = (proto.CLOCK_SNAPSHOT, proto.INTERNED, proto.DEFAULTS, proto.TRACK_DESCRIPTOR)
_OF_EVERY_PACKET = (proto.SEQUENCE, proto.FLAGS, proto.TIMESTAMP, proto.TIMESTAMP_CLOCK)


@dataclass(frozen=True)
class RawEvents:
    """Begins and ends of slices, in the order of the file.

    Attributes:
        time_ns: int64 [events].
        is_begin: int64 [events], 1 or 0.
        name: int64 [events], a number of `Packets.names`.
        track: int64 [events], a number of `Packets.used_tracks`.
    """

    time_ns: Int64Array
    is_begin: Int64Array
    name: Int64Array
    track: Int64Array


@dataclass(frozen=True)
class Track:
    """What a track is called.

    Attributes:
        text: Its name, or that of its thread or process.
        told: What the text says of its place, such as `{"Device": "0"}`.
        parent: The track that it lies in; 0: there is none.
    """

    text: str
    told: dict[str, str]
    parent: int


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

    def set_defaults(self, defaults: dict[int, int | bytes]) -> None:
        """Take what packets and events do not say themselves."""
        self.clock = _number(defaults, proto.TIMESTAMP_CLOCK) or self.clock
        of_events = dict(fields(_bytes(defaults, proto.TRACK_EVENT)))
        self.track = _number(of_events, proto.TRACK) or self.track

    def set_clocks(self, snapshot: bytes) -> None:
        """Take the times of clocks at one moment."""
        rows = [dict(fields(value)) for number, value in fields(snapshot) if number == 1 and isinstance(value, bytes)]
        known = next((_number(row, 2) for row in rows if _number(row, 1) < _FIRST_OWN_CLOCK), None)
        for row in rows:
            clock = _number(row, 1)
            if clock >= _FIRST_OWN_CLOCK and known is not None:
                is_stepping = bool(_number(row, 3))
                self.times[clock] = known if is_stepping else known - _number(row, 2)
                (self.steps.add if is_stepping else self.steps.discard)(clock)

    def add_names(self, interned: bytes) -> None:
        """Take the names of events."""
        for number, value in fields(interned):
            if number == proto.EVENT_NAMES and isinstance(value, bytes):
                row = dict(fields(value))
                self.names[_number(row, 1)] = _text(row, 2)

    def time_ns(self, clock: int, timestamp: int) -> int:
        """The time of a packet."""
        clock = clock or self.clock
        if clock not in self.times:
            return timestamp
        time_ns = self.times[clock] + timestamp
        if clock in self.steps:
            self.times[clock] = time_ns
        return time_ns


class Packets:
    """The packets of a trace.

    Args:
        content: The trace.
        limits: Of its file.

    Attributes:
        names: Of slices, with a number each.
        used_tracks: Tracks that have events, with a number each.
        tracks: What tracks are called; not all of them are there.

    Raises:
        ValueError: It is not a trace, or too large.
        OverflowError: A time is.
    """

    def __init__(self, content: bytes, limits: Limits) -> None:
        self.names: dict[str, int] = {}
        self.used_tracks: dict[int, int] = {}
        self.tracks: dict[int, Track] = {}
        self._content = content
        self._sequences: dict[int, _Sequence] = defaultdict(_Sequence)
        self._events = array("q")
        self._limits = limits
        self._n_rows = self._n_inflated = 0
        for begin, end in spans(content, proto.PACKET):
            self._count(_ROWS_A_PACKET * len(begin))
            (packed,) = columns(content, begin, end, (proto.COMPRESSED,))
            done = 0
            for row in np.flatnonzero(packed.begin).tolist():
                self._content = content
                self._add(begin[done:row], end[done:row])
                self._add_compressed(content[packed.begin[row] : packed.end[row]])
                done = row + 1
            self._content = content
            self._add(begin[done:], end[done:])

    def events(self) -> RawEvents:
        """What happened."""
        return RawEvents(*np.array(self._events).reshape(-1, 4).T)

    def place(self, track: int) -> tuple[str, dict[str, str]]:
        """The text of a track, and where it is, as its own text and those of the tracks that it lies in say."""
        text = self.tracks[track].text if track in self.tracks else ""
        told: dict[str, str] = {}
        for _ in range(_MAX_PARENTS):
            if (found := self.tracks.get(track)) is None:
                break
            told, track = {**found.told, **told}, found.parent
        return text, told

    def _count(self, n_rows: int) -> None:
        self._n_rows += n_rows
        self._limits.check_rows(self._n_rows)

    def _add_compressed(self, packed: bytes) -> None:
        """Read packets that are compressed together, as `bragg export` and Perfetto's own writers leave them."""
        left = self._limits.content_bytes - self._n_inflated
        inflater = zlib.decompressobj()
        try:
            self._content = inflater.decompress(packed, left + 1)
        except zlib.error as error:
            raise ValueError(f"its compressed packets are damaged: {error}") from error
        self._n_inflated += len(self._content)
        if len(self._content) > left:
            raise TooLargeError(f"it is over {self._limits.content_bytes >> 20} MB when decompressed")
        for begin, end in spans(self._content, proto.PACKET):
            self._count(len(begin))  # which take half as much as others: 7 bytes of the file for each
            self._add(begin, end)

    def _add(self, begin: Int64Array, end: Int64Array) -> None:
        """Read packets, in their order."""
        found = columns(self._content, begin, end, (*_OF_EVERY_PACKET, *_STATE, proto.TRACK_EVENT))
        told, state, (event,) = found[:4], found[4:8], found[8:]
        kind, track, name, text = columns(
            self._content, event.begin, event.end, (proto.TYPE, proto.TRACK, proto.NAME, _NAME_TEXT)
        )
        has_state = (told[1].number & proto.STATE_CLEARED) != 0
        for column in state:
            has_state |= column.begin > 0
        has_slice = np.isin(kind.number, (proto.SLICE_BEGIN, proto.SLICE_END))
        numbers = (each.number.tolist() for each in (*told, kind, track, name))
        texts = (text.begin.tolist(), text.end.tolist(), has_state.tolist(), has_slice.tolist())
        rows = zip(*numbers, *texts, strict=True)
        for row, (writer, flags, stamp, clock, kind_of, on, name_of, from_, to, is_state, is_slice) in enumerate(rows):
            sequence = self._sequences[writer]
            if is_state:
                self._set_state(sequence, flags, [self._bytes(column, row) for column in state])
            time_ns = sequence.time_ns(clock, stamp)
            if is_slice:
                called = self._content[from_:to].decode(errors="replace") or sequence.names.get(name_of, "")
                name_id = self.names.setdefault(called, len(self.names))
                track_id = self.used_tracks.setdefault(on or sequence.track, len(self.used_tracks))
                self._events.extend((time_ns, kind_of == proto.SLICE_BEGIN, name_id, track_id))

    def _bytes(self, column: Column, row: int) -> bytes:
        return self._content[column.begin[row] : column.end[row]]

    def _set_state(self, sequence: _Sequence, flags: int, parts: list[bytes]) -> None:
        """Take what later packets refer to."""
        snapshot, interned, defaults, descriptor = parts
        if flags & proto.STATE_CLEARED:
            sequence.names.clear()
        if interned:
            sequence.add_names(interned)
        if defaults:
            sequence.set_defaults(dict(fields(defaults)))
        if snapshot:
            sequence.set_clocks(snapshot)
        if descriptor:
            uuid, track = _described(descriptor)
            self.tracks[uuid] = track


# Writers repeat descriptors, and damaged traces a million times.
@lru_cache(maxsize=1 << 12)
def _described(descriptor: bytes) -> tuple[int, Track]:
    """A track and its number."""
    row = dict(fields(descriptor))
    process, thread = (dict(fields(_bytes(row, number))) for number in (proto.PROCESS, proto.THREAD))
    text = _text(row, proto.TRACK_NAME) or _text(process, proto.PROCESS_NAME)
    if process and "Process" not in text:
        text = f"Process {_number(process, proto.PID)} {text}"
    if thread:
        text = f"Thread {_number(thread, 2)} {_text(thread, 5)}"
    return _number(row, proto.UUID), Track(text, dict(_PLACE.findall(text)), _number(row, proto.PARENT))


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
