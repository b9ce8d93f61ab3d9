"""Perfetto trace: protocol buffer packets, one packet sequence for each lane; of one profile, or of the ranks of a job.

A sequence begins with a packet that sets its track and the texts that its events refer to by number, and one that sets
its clock: nanoseconds, each packet's time counted from the packet before. Then follow the begin and the end of each
slice.

Field numbers are those of Perfetto's public protos: TracePacket, TrackEvent, TrackDescriptor, InternedData,
DebugAnnotation, ClockSnapshot.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np

from bragg.formats.encodings.protobuf import Messages, message, number, text
from bragg.formats.files import new_file
from bragg.formats.format import Format
from bragg.formats.timelines.lanes import Lane, lanes, require_slices
from bragg.model import FlowTable, Profile, TrackKind
from bragg.model.rank_summary import CollectiveSlices
from bragg.model.sample_stacks import with_sample_stacks
from bragg.model.table import BoolArray, Int64Array

__all__ = ["FORMAT", "REALTIME", "Place", "TrackIds", "packets", "write"]

_PACKET = 1
# Fields of a packet.
_CLOCK_SNAPSHOT, _TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _INTERNED, _FLAGS = 6, 8, 10, 11, 12, 13
_TIMESTAMP_CLOCK, _DEFAULTS, _TRACK_DESCRIPTOR, _MACHINE = 58, 59, 60, 98
# Fields of a track event.
_ANNOTATION, _TYPE, _NAME, _TRACK, _DOUBLE_VALUE, _FLOW, _LAST_FLOW, _SAME_WORK = 4, 9, 10, 11, 44, 47, 48, 52
_SLICE_BEGIN, _SLICE_END, _COUNTER = 1, 2, 4
# Fields of a track descriptor.
_UUID, _TRACK_NAME, _PROCESS, _THREAD, _PARENT, _COUNTER_TRACK, _ORDER_RANK = 1, 2, 3, 4, 5, 8, 12
# Fields of a process.
_PID, _SORT_INDEX, _PROCESS_NAME, _PROCESS_LABEL = 1, 3, 6, 8
# Fields of interned data.
_EVENT_NAMES, _ANNOTATION_NAMES, _ANNOTATION_STRINGS = 2, 3, 29
# Fields of an annotation.
_ANNOTATION_NAME, _ANNOTATION_NUMBER, _ANNOTATION_STRING = 1, 3, 17
_CALL_PATH, _GROUP, _COLLECTIVE = 1, 2, 3
# The trace's own clock, and one that each sequence defines for itself.
REALTIME, BOOTTIME, _SINCE_LAST_PACKET = 1, 6, 64
_STATE_CLEARED = 1
_ROWS_AT_ONCE = 1 << 16
# Kernels of PyTorch stand below a hundred frames of libraries; all of them took nine tenths of a trace.
_MOST_CALLERS, _OUTER_CALLERS = 24, 8


class TrackIds:
    """Numbers of tracks and of packet sequences, each unique in the file."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def track(self) -> int:
        """Of a track."""
        return next(self._numbers)

    def sequence(self, track: int) -> int:
        """Of the sequence of a track."""
        return track


@dataclass(frozen=True)
class Place:
    """Where a profile stands in a trace with others.

    Attributes:
        clock: What times are shown as: `BOOTTIME` or `REALTIME`.
        machine: Number of its machine; 0: the only one.
        first_flow: Number of its first arrow.
        process: Id of its own process; None: as it was recorded.
        name: Of that process; empty: by its id.
        labels: Shown beside the name.
        order: Of the process among others; None: as the viewer likes.
        run_id: What the launcher calls the run.
        collectives: Finds the slices that are linked with those of other ranks; None: none are.
    """

    clock: int = BOOTTIME
    machine: int = 0
    first_flow: int = 1
    process: int | None = None
    name: str = ""
    labels: tuple[str, ...] = ()
    order: int | None = None
    run_id: str = ""
    collectives: Callable[[Profile], CollectiveSlices] | None = None


def write(profile: Profile, path: Path) -> None:
    """Write slices, arrows from launches to what they caused, and counters.

    Raises:
        UsageError: The profile has no slices.
        BadFile: The file cannot be written.
    """
    require_slices(profile)
    with new_file(path) as file:
        file.writelines(packets(profile, TrackIds(), Place()))


def packets(profile: Profile, ids: TrackIds, place: Place) -> Iterator[bytes]:
    """The packets of a profile, in pieces of some megabytes at most.

    Args:
        profile: With slices.
        ids: Numbers of its tracks.
        place: Where it stands among others.
    """
    profile = with_sample_stacks(profile)
    trace = _Trace(profile, ids, place)
    for lane in lanes(profile):
        yield from trace.lane(lane)
    for track in np.flatnonzero(profile.tracks.kind == TrackKind.COUNTER).tolist():
        yield from trace.counter(track)


class _Trace:
    """Packets of a profile."""

    def __init__(self, profile: Profile, ids: TrackIds, place: Place) -> None:
        self._profile = profile
        self._ids = ids
        self._place = place
        self._groups: dict[tuple[int, int], int] = {}
        self._incoming = np.zeros(len(profile.slices), np.int64)
        numbers = np.arange(len(profile.flows)) + place.first_flow
        self._incoming[profile.flows.target] = numbers
        self._outgoing = _outgoing(profile.flows, numbers, len(profile.slices))
        self._links = (
            _Links(place.collectives(profile), place.run_id, len(profile.slices)) if place.collectives else None
        )

    def lane(self, lane: Lane) -> Iterator[bytes]:
        """Everything about one lane."""
        tree, slices = self._profile.tree, self._profile.slices
        uuid = self._ids.track()
        sequence = _Sequence(self._ids.sequence(uuid), uuid, self._place)
        yield from self._describe_lane(lane, uuid)
        nodes, text_of_row = np.unique(slices.node[lane.rows], return_inverse=True)
        texts = [message(_ANNOTATION_NAMES, number(1, _CALL_PATH), text(2, "call_path"))]
        has_paths = self._has_paths(lane)
        for iid, node in enumerate(nodes.tolist(), start=1):
            texts.append(message(_EVENT_NAMES, number(1, iid), text(2, tree.label(node))))
            if has_paths:
                texts.append(message(_ANNOTATION_STRINGS, number(1, iid), text(2, self._path(node))))
        texts += self._links.texts(lane.rows, len(nodes) + 1) if self._links else []
        events = _Events(slices.start_ns[lane.rows], slices.duration_ns[lane.rows])
        yield from sequence.begin(int(events.time_ns[0]), texts)
        for begin in range(0, len(events.row), _ROWS_AT_ONCE):
            block = slice(begin, begin + _ROWS_AT_ONCE)
            row, is_begin = events.row[block], ~events.is_end[block]
            event = Messages(len(row)).numbers(_TYPE, np.where(is_begin, _SLICE_BEGIN, _SLICE_END))
            event.numbers(_NAME, text_of_row[row] + 1, is_begin)
            self._add_context(event, lane, text_of_row[row] + 1, is_begin)
            self._add_flows(event, lane.rows[row], is_begin)
            if self._links:
                self._links.add(event, lane.rows[row], is_begin, len(nodes) + 1)
            yield sequence.packets(events.delta_ns[block], event)

    def _add_context(self, event: Messages, lane: Lane, text_number: Int64Array, is_begin: BoolArray) -> None:
        """Call paths of device slices; a host slice stands inside its callers."""
        if self._has_paths(lane):
            annotation = Messages(len(text_number)).numbers(_ANNOTATION_NAME, np.full(len(text_number), _CALL_PATH))
            event.messages(_ANNOTATION, annotation.numbers(_ANNOTATION_STRING, text_number), is_begin)

    def _has_paths(self, lane: Lane) -> bool:
        return bool(self._profile.tracks.kind[lane.track] == TrackKind.GPU_STREAM)

    def _path(self, node: int) -> str:
        """What called a node, from the program on; the middle of a long path is left out."""
        tree = self._profile.tree
        above = tree.path(node)[1:-1]
        if len(above) <= _MOST_CALLERS:
            return " > ".join(map(tree.label, above))
        outer, inner = above[:_OUTER_CALLERS], above[_OUTER_CALLERS - _MOST_CALLERS :]
        left_out = f"... {len(above) - _MOST_CALLERS} more ..."
        return " > ".join([*map(tree.label, outer), left_out, *map(tree.label, inner)])

    def _add_flows(self, event: Messages, row: Int64Array, is_begin: BoolArray) -> None:
        for field, ids in ((_LAST_FLOW, self._incoming[row]), *((_FLOW, ids[row]) for ids in self._outgoing)):
            if (present := is_begin & (ids != 0)).any():
                event.fixed64(field, ids, present)

    def counter(self, track: int) -> Iterator[bytes]:
        """Everything about one counter."""
        tracks, counters = self._profile.tracks, self._profile.counters
        of_track = counters.take(counters.track == track)
        of_track = of_track.take(np.argsort(of_track.time_ns, kind="stable"))
        if not len(of_track):
            return
        uuid = self._ids.track()
        sequence = _Sequence(self._ids.sequence(uuid), uuid, self._place)
        yield from self._describe(uuid, track, text(_TRACK_NAME, tracks.label(track)) + message(_COUNTER_TRACK))
        yield from sequence.begin(int(of_track.time_ns[0]), [])
        event = Messages(len(of_track)).numbers(_TYPE, np.full(len(of_track), _COUNTER))
        delta_ns = np.diff(of_track.time_ns, prepend=of_track.time_ns[:1])
        yield sequence.packets(delta_ns, event.fixed64(_DOUBLE_VALUE, of_track.value))

    def _describe_lane(self, lane: Lane, uuid: int) -> Iterator[bytes]:
        tracks = self._profile.tracks
        label = lane.label(tracks)
        if tracks.kind[lane.track] == TrackKind.HOST_THREAD and not lane.overflow:
            thread = int(tracks.stream[lane.track])
            content = message(_THREAD, number(1, self._process_id(lane.track)), number(2, thread), text(5, label))
        else:
            content = text(_TRACK_NAME, label)
        yield from self._describe(uuid, lane.track, content)

    def _describe(self, uuid: int, track: int, content: bytes) -> Iterator[bytes]:
        """A track descriptor, after those of the process and the device that it stands under."""
        tracks = self._profile.tracks
        process, device = int(tracks.unique_process[track]), int(tracks.device[track])
        if (process, -1) not in self._groups:
            self._groups[process, -1] = self._ids.track()
            yield self._descriptor(self._groups[process, -1], self._process(track))
        if (process, device) not in self._groups:
            self._groups[process, device] = self._ids.track()
            parent = number(_PARENT, self._groups[process, -1])
            yield self._descriptor(self._groups[process, device], text(_TRACK_NAME, f"GPU {device}") + parent)
        yield self._descriptor(uuid, content + number(_PARENT, self._groups[process, device]))

    def _process_id(self, track: int) -> int:
        process = int(self._profile.tracks.unique_process[track])
        own = self._place.process
        return own if own is not None and process == self._profile.run.pid else process

    def _process(self, track: int) -> bytes:
        """The process of a track, and its place among others."""
        place, tracks = self._place, self._profile.tracks
        is_own = int(tracks.unique_process[track]) == self._profile.run.pid
        name = place.name if place.name and is_own else tracks.process_label(track)
        labels = [text(_PROCESS_LABEL, label) for label in place.labels]
        order = () if place.order is None else (number(_SORT_INDEX, place.order),)
        process = message(_PROCESS, number(_PID, self._process_id(track)), *order, text(_PROCESS_NAME, name), *labels)
        return process + (b"" if place.order is None else number(_ORDER_RANK, place.order))

    def _descriptor(self, uuid: int, content: bytes) -> bytes:
        machine = self._place.machine
        described = message(_TRACK_DESCRIPTOR, number(_UUID, uuid), content)
        return message(_PACKET, described, number(_MACHINE, machine) if machine else b"")


class _Links:
    """What links a collective with the same one on other ranks: arrows, a number of the work, its group and sequence.

    Args:
        found: The collectives.
        run_id: What the launcher calls the run.
        n_slices: Rows of the slice table.
    """

    def __init__(self, found: CollectiveSlices, run_id: str, n_slices: int) -> None:
        self._groups = found.groups
        first = np.array([_first_of_group(run_id, group) for group in found.groups], np.uint64)
        self._work = np.zeros(n_slices, np.uint64)
        self._work[found.row] = first[found.group] + found.sequence.astype(np.uint64)
        self._group = np.zeros(n_slices, np.int32)
        self._group[found.row] = found.group
        self._sequence = np.zeros(n_slices, np.int64)
        self._sequence[found.row] = found.sequence

    def texts(self, rows: Int64Array, first: int) -> list[bytes]:
        """Those that slices of a lane refer to; groups are numbered from `first`."""
        if not self._work[rows].any():
            return []
        names = ((_GROUP, "group"), (_COLLECTIVE, "collective"))
        texts = [message(_ANNOTATION_NAMES, number(1, iid), text(2, name)) for iid, name in names]
        groups = enumerate(self._groups, first)
        return texts + [message(_ANNOTATION_STRINGS, number(1, iid), text(2, name)) for iid, name in groups]

    def add(self, event: Messages, rows: Int64Array, is_begin: BoolArray, first: int) -> None:
        """Add them to the events of these slices."""
        work = self._work[rows]
        is_linked = is_begin & (work != 0)
        if not is_linked.any():
            return
        n_rows = len(rows)
        group = Messages(n_rows).numbers(_ANNOTATION_NAME, np.full(n_rows, _GROUP))
        place = Messages(n_rows).numbers(_ANNOTATION_NAME, np.full(n_rows, _COLLECTIVE))
        event.messages(_ANNOTATION, group.numbers(_ANNOTATION_STRING, self._group[rows] + first), is_linked)
        event.messages(_ANNOTATION, place.numbers(_ANNOTATION_NUMBER, self._sequence[rows]), is_linked)
        event.fixed64(_FLOW, work, is_linked).numbers(_SAME_WORK, work, is_linked)


def _first_of_group(run_id: str, group: str) -> int:
    """Number of a group's first collective: the same on every rank, and above those of all arrows."""
    named = f"{run_id}/collectives/{group}".encode()
    high = int.from_bytes(hashlib.blake2b(named, digest_size=4).digest(), "little")
    return (high | 1 << 31) << 32


class _Events:
    """Begins and ends of nested slices, by time.

    At one time slices that began earlier end first, inner before outer; then others begin, outer before inner.

    Attributes:
        row: The slice of each event.
        is_end: Whether it ends there.
        time_ns: Ascending.
        delta_ns: Time since the event before.
    """

    def __init__(self, start_ns: Int64Array, duration_ns: Int64Array) -> None:
        rows = np.arange(len(start_ns))
        is_empty = duration_ns == 0
        # A stable sort by time keeps this order: ends from the last slice to the first, then begins, an empty slice's
        # end straight after its begin.
        begins = np.repeat(rows, 1 + is_empty)
        ends = rows[~is_empty][::-1]
        row = np.concatenate([ends, begins])
        is_end = np.concatenate([np.ones(len(ends), np.bool_), np.diff(begins, prepend=-1) == 0])
        time_ns = start_ns[row] + np.where(is_end, duration_ns[row], 0)
        order = np.argsort(time_ns, kind="stable")
        self.row, self.is_end, self.time_ns = row[order], is_end[order], time_ns[order]
        self.delta_ns = np.diff(self.time_ns, prepend=self.time_ns[:1])


@dataclass(frozen=True)
class _Sequence:
    """Packets of one track."""

    number: int
    uuid: int
    place: Place

    def begin(self, time_ns: int, texts: list[bytes]) -> Iterator[bytes]:
        """The two packets that the events of a track rely on."""
        defaults = number(_TIMESTAMP_CLOCK, _SINCE_LAST_PACKET) + message(_TRACK_EVENT, number(_TRACK, self.uuid))
        state = message(_DEFAULTS, defaults) + message(_INTERNED, *texts)
        yield self._packet(number(_FLAGS, _STATE_CLEARED), state)
        own_clock = message(1, number(1, _SINCE_LAST_PACKET), number(2, time_ns), number(3, 1))
        trace_clock = message(1, number(1, self.place.clock), number(2, time_ns))
        shown = number(2, self.place.clock) if self.place.clock != BOOTTIME else b""
        yield self._packet(message(_CLOCK_SNAPSHOT, own_clock, trace_clock, shown))

    def packets(self, delta_ns: Int64Array, event: Messages) -> bytes:
        """One packet for each event."""
        rows = len(delta_ns)
        packet = Messages(rows).numbers(_TIMESTAMP, delta_ns).numbers(_SEQUENCE, np.full(rows, self.number))
        if self.place.machine:
            packet.numbers(_MACHINE, np.full(rows, self.place.machine))
        return Messages(rows).messages(_PACKET, packet.messages(_TRACK_EVENT, event)).encoded()

    def _packet(self, *content: bytes) -> bytes:
        machine = number(_MACHINE, self.place.machine) if self.place.machine else b""
        return message(_PACKET, number(_SEQUENCE, self.number), *content, machine)


def _outgoing(flows: FlowTable, ids: Int64Array, n_slices: int) -> list[Int64Array]:
    """Ids of the arrows that leave each slice.

    Args:
        flows: The arrows.
        ids: Of each.
        n_slices: Rows of the slice table.

    Returns:
        As many arrays as the most arrows that leave one slice, each [n_slices]; 0 is not an arrow.
    """
    found: list[Int64Array] = []
    sources = flows.source
    while len(sources):
        leaving, first = np.unique(sources, return_index=True)
        found.append(np.zeros(n_slices, np.int64))
        found[-1][leaving] = ids[first]
        sources, ids = np.delete(sources, first), np.delete(ids, first)
    return found


FORMAT = Format(
    ".perfetto-trace",
    "Perfetto trace, protocol buffers",
    next_step="open it in Perfetto",
    write=write,
)
