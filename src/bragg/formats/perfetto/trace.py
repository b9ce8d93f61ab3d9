"""The Perfetto trace of a profile: protocol buffer packets, one packet sequence for each lane.

A sequence begins with a packet that sets its track and the texts that its events refer to by number, and one that sets
its clock: nanoseconds, each packet's time counted from the packet before. Then follow the begin and the end of each
slice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np

from bragg.formats.encodings.protobuf import Messages, message, number, text
from bragg.formats.files import new_file
from bragg.formats.format import Format
from bragg.formats.perfetto import fields
from bragg.formats.perfetto.collectives import Links
from bragg.formats.perfetto.events import Events
from bragg.formats.perfetto.gpu_stages import stage_events, stage_texts
from bragg.formats.perfetto.reader import is_perfetto, read
from bragg.formats.timelines.lanes import Lane, lanes, require_slices
from bragg.model import FlowTable, Profile, TrackKind
from bragg.model.ids import NodeId
from bragg.model.sample_stacks import with_sample_stacks
from bragg.model.table import BoolArray, Int64Array

_ROWS_AT_ONCE = 1 << 16
# Kernels of PyTorch stand below a hundred frames of libraries; all of them took nine tenths of a trace.
_MOST_CALLERS, _OUTER_CALLERS = 24, 8


class TrackIds:
    """Numbers of tracks and of packet sequences, each unique in the file; links to what else is in it."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def track(self) -> int:
        """Of a track."""
        return next(self._numbers)

    def sequence(self, track: int) -> int:
        """Of the sequence of a track."""
        return track

    def links(self, profile: Profile) -> Links | None:
        """What its slices are linked by with those of other profiles; None: by nothing."""
        return None


@dataclass(frozen=True)
class Placement:
    """Where a profile stands in a trace with others.

    Attributes:
        clock: What times are shown as: `BOOTTIME` or `REALTIME`.
        machine: Number of its machine; 0: the only one.
        first_flow: Number of its first arrow.
        process: Id of its own process; None: as it was recorded.
        name: Of that process; empty: by its id.
        labels: Shown beside the name.
        order: Of the process among others; None: as the viewer likes.
        has_stages: Whether GPU work is written as stages of GPUs, too.
    """

    clock: int = fields.BOOTTIME
    machine: int = 0
    first_flow: int = 1
    process: int | None = None
    name: str = ""
    labels: tuple[str, ...] = ()
    order: int | None = None
    has_stages: bool = False


def write(profile: Profile, path: Path, *, has_stages: bool = False) -> None:
    """Write slices, arrows from launches to what they caused, and counters.

    Args:
        profile: With slices.
        path: The file.
        has_stages: Whether GPU work is written as stages of GPUs, too.

    Raises:
        UsageError: The profile has no slices.
        BadFile: The file cannot be written.
    """
    require_slices(profile)
    with new_file(path) as file:
        file.writelines(packets(profile, TrackIds(), Placement(has_stages=has_stages)))


def packets(profile: Profile, ids: TrackIds, place: Placement) -> Iterator[bytes]:
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
        if place.has_stages and profile.tracks.kind[lane.track] == TrackKind.GPU_STREAM:
            yield from trace.stages(lane)
    for track in np.flatnonzero(profile.tracks.kind == TrackKind.COUNTER).tolist():
        yield from trace.counter(track)


class _Trace:
    """Packets of a profile."""

    def __init__(self, profile: Profile, ids: TrackIds, place: Placement) -> None:
        self._profile = profile
        self._ids = ids
        self._place = place
        self._groups: dict[tuple[int, int], int] = {}
        self._incoming = np.zeros(len(profile.slices), np.int64)
        numbers = np.arange(len(profile.flows)) + place.first_flow
        self._incoming[profile.flows.target] = numbers
        self._outgoing = _outgoing(profile.flows, numbers, len(profile.slices))
        self._links = ids.links(profile)

    def lane(self, lane: Lane) -> Iterator[bytes]:
        """Everything about one lane."""
        tree, slices = self._profile.tree, self._profile.slices
        uuid = self._ids.track()
        sequence = _Sequence(self._ids.sequence(uuid), uuid, self._place)
        yield from self._describe_lane(lane, uuid)
        nodes, text_of_row = np.unique(slices.node[lane.rows], return_inverse=True)
        texts = [message(fields.ANNOTATION_NAMES, number(1, fields.CALL_PATH), text(2, "call_path"))]
        has_paths = self._has_paths(lane)
        for iid, node in enumerate(nodes.tolist(), start=1):
            texts.append(message(fields.EVENT_NAMES, number(1, iid), text(2, tree.label(node))))
            if has_paths:
                texts.append(message(fields.ANNOTATION_STRINGS, number(1, iid), text(2, self._path(node))))
        texts += self._links.texts(lane.rows, len(nodes) + 1) if self._links else []
        events = Events(slices.start_ns[lane.rows], slices.duration_ns[lane.rows])
        yield from sequence.begin(int(events.time_ns[0]), texts)
        for begin in range(0, len(events.row), _ROWS_AT_ONCE):
            block = slice(begin, begin + _ROWS_AT_ONCE)
            row, is_begin = events.row[block], ~events.is_end[block]
            event = Messages(len(row)).numbers(fields.TYPE, np.where(is_begin, fields.SLICE_BEGIN, fields.SLICE_END))
            event.numbers(fields.NAME, text_of_row[row] + 1, is_begin)
            self._add_context(event, lane, text_of_row[row] + 1, is_begin)
            self._add_flows(event, lane.rows[row], is_begin)
            if self._links:
                self._links.add(event, lane.rows[row], is_begin, len(nodes) + 1)
            yield sequence.packets(events.delta_ns[block], event)

    def stages(self, lane: Lane) -> Iterator[bytes]:
        """A lane of a GPU once more, as stages of its queue."""
        sequence = _Sequence(self._ids.sequence(self._ids.track()), 0, self._place)
        begin_ns = int(self._profile.slices.start_ns[lane.rows[0]])
        yield from sequence.begin(begin_ns, stage_texts(self._profile, lane, self._process_id(lane.track)))
        for delta_ns, event in stage_events(self._profile, lane, _ROWS_AT_ONCE):
            yield sequence.packets(delta_ns, event, fields.RENDER_STAGE)

    def _add_context(self, event: Messages, lane: Lane, text_number: Int64Array, is_begin: BoolArray) -> None:
        """Call paths of device slices; a host slice stands inside its callers."""
        if self._has_paths(lane):
            annotation = Messages(len(text_number)).numbers(
                fields.ANNOTATION_NAME, np.full(len(text_number), fields.CALL_PATH)
            )
            event.messages(fields.ANNOTATION, annotation.numbers(fields.ANNOTATION_STRING, text_number), is_begin)

    def _has_paths(self, lane: Lane) -> bool:
        return bool(self._profile.tracks.kind[lane.track] == TrackKind.GPU_STREAM)

    def _path(self, node: NodeId) -> str:
        """What called a node, from the program on; the middle of a long path is left out."""
        tree = self._profile.tree
        above = tree.path(node)[1:-1]
        if len(above) <= _MOST_CALLERS:
            return " > ".join(map(tree.label, above))
        outer, inner = above[:_OUTER_CALLERS], above[_OUTER_CALLERS - _MOST_CALLERS :]
        left_out = f"... {len(above) - _MOST_CALLERS} more ..."
        return " > ".join([*map(tree.label, outer), left_out, *map(tree.label, inner)])

    def _add_flows(self, event: Messages, row: Int64Array, is_begin: BoolArray) -> None:
        for field, ids in (
            (fields.LAST_FLOW, self._incoming[row]),
            *((fields.FLOW, ids[row]) for ids in self._outgoing),
        ):
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
        yield from self._describe(
            uuid, track, text(fields.TRACK_NAME, tracks.label(track)) + message(fields.COUNTER_TRACK)
        )
        yield from sequence.begin(int(of_track.time_ns[0]), [])
        event = Messages(len(of_track)).numbers(fields.TYPE, np.full(len(of_track), fields.COUNTER))
        delta_ns = np.diff(of_track.time_ns, prepend=of_track.time_ns[:1])
        yield sequence.packets(delta_ns, event.fixed64(fields.DOUBLE_VALUE, of_track.value))

    def _describe_lane(self, lane: Lane, uuid: int) -> Iterator[bytes]:
        tracks = self._profile.tracks
        label = lane.label(tracks)
        if tracks.kind[lane.track] == TrackKind.HOST_THREAD and not lane.overflow:
            thread = int(tracks.stream[lane.track])
            content = message(fields.THREAD, number(1, self._process_id(lane.track)), number(2, thread), text(5, label))
        else:
            content = text(fields.TRACK_NAME, label)
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
            parent = number(fields.PARENT, self._groups[process, -1])
            yield self._descriptor(self._groups[process, device], text(fields.TRACK_NAME, f"GPU {device}") + parent)
        yield self._descriptor(uuid, content + number(fields.PARENT, self._groups[process, device]))

    def _process_id(self, track: int) -> int:
        process = int(self._profile.tracks.unique_process[track])
        own = self._place.process
        return own if own is not None and process == self._profile.run.pid else process

    def _process(self, track: int) -> bytes:
        """The process of a track, and its place among others."""
        place, tracks = self._place, self._profile.tracks
        is_own = int(tracks.unique_process[track]) == self._profile.run.pid
        name = place.name if place.name and is_own else tracks.process_label(track)
        labels = [text(fields.PROCESS_LABEL, label) for label in place.labels]
        order = () if place.order is None else (number(fields.SORT_INDEX, place.order),)
        process = message(
            fields.PROCESS,
            number(fields.PID, self._process_id(track)),
            *order,
            text(fields.PROCESS_NAME, name),
            *labels,
        )
        return process + (b"" if place.order is None else number(fields.ORDER_RANK, place.order))

    def _descriptor(self, uuid: int, content: bytes) -> bytes:
        machine = self._place.machine
        described = message(fields.TRACK_DESCRIPTOR, number(fields.UUID, uuid), content)
        return message(fields.PACKET, described, number(fields.MACHINE, machine) if machine else b"")


@dataclass(frozen=True)
class _Sequence:
    """Packets of one track; `uuid` is 0 where its events say themselves where they belong."""

    number: int
    uuid: int
    place: Placement

    def begin(self, time_ns: int, texts: list[bytes]) -> Iterator[bytes]:
        """The two packets that the events of a track rely on."""
        defaults = number(fields.TIMESTAMP_CLOCK, fields.SINCE_LAST_PACKET)
        if self.uuid:
            defaults += message(fields.TRACK_EVENT, number(fields.TRACK, self.uuid))
        state = message(fields.DEFAULTS, defaults) + message(fields.INTERNED, *texts)
        yield self._packet(number(fields.FLAGS, fields.STATE_CLEARED), state)
        own_clock = message(1, number(1, fields.SINCE_LAST_PACKET), number(2, time_ns), number(3, 1))
        trace_clock = message(1, number(1, self.place.clock), number(2, time_ns))
        shown = number(2, self.place.clock) if self.place.clock != fields.BOOTTIME else b""
        yield self._packet(message(fields.CLOCK_SNAPSHOT, own_clock, trace_clock, shown))

    def packets(self, delta_ns: Int64Array, event: Messages, field: int = fields.TRACK_EVENT) -> bytes:
        """One packet for each event."""
        rows = len(delta_ns)
        packet = Messages(rows).numbers(fields.TIMESTAMP, delta_ns).numbers(fields.SEQUENCE, np.full(rows, self.number))
        if self.place.machine:
            packet.numbers(fields.MACHINE, np.full(rows, self.place.machine))
        return Messages(rows).messages(fields.PACKET, packet.messages(field, event)).encoded()

    def _packet(self, *content: bytes) -> bytes:
        machine = number(fields.MACHINE, self.place.machine) if self.place.machine else b""
        return message(fields.PACKET, number(fields.SEQUENCE, self.number), *content, machine)


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
    sniff=is_perfetto,
    read=read,
    write=write,
)
