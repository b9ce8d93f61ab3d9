"""Perfetto trace: protocol buffer packets, one packet sequence for each lane.

A sequence begins with a packet that sets its track and the texts that its events refer to by number, and one that sets
its clock: nanoseconds, each packet's time counted from the packet before. Then follow the begin and the end of each
slice.

Field numbers are those of Perfetto's public protos: TracePacket, TrackEvent, TrackDescriptor, InternedData,
DebugAnnotation, ClockSnapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np

from bragg.formats.encodings.protobuf import Messages, message, number, text
from bragg.formats.files import new_file
from bragg.formats.format import Format
from bragg.formats.timeline import Lane, lanes, require_slices
from bragg.model import FlowTable, Profile, TrackKind
from bragg.model.sample_stacks import with_sample_stacks
from bragg.model.table import BoolArray, Int64Array

__all__ = ["FORMAT", "write"]

_PACKET = 1
# Fields of a packet.
_CLOCK_SNAPSHOT, _TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _INTERNED, _FLAGS = 6, 8, 10, 11, 12, 13
_TIMESTAMP_CLOCK, _DEFAULTS, _TRACK_DESCRIPTOR = 58, 59, 60
# Fields of a track event.
_ANNOTATION, _TYPE, _NAME, _TRACK, _DOUBLE_VALUE, _FLOW, _LAST_FLOW = 4, 9, 10, 11, 44, 47, 48
_SLICE_BEGIN, _SLICE_END, _COUNTER = 1, 2, 4
# Fields of a track descriptor.
_UUID, _TRACK_NAME, _PROCESS, _THREAD, _PARENT, _COUNTER_TRACK = 1, 2, 3, 4, 5, 8
# Fields of interned data.
_EVENT_NAMES, _ANNOTATION_NAMES, _ANNOTATION_STRINGS = 2, 3, 29
# Fields of an annotation.
_ANNOTATION_NAME, _ANNOTATION_STRING = 1, 17
_CALL_PATH = 1
# The trace's own clock, and one that each sequence defines for itself.
_BOOTTIME, _SINCE_LAST_PACKET = 6, 64
_STATE_CLEARED = 1
_ROWS_AT_ONCE = 1 << 16


def write(profile: Profile, path: Path) -> None:
    """Write slices, arrows from launches to what they caused, and counters.

    Raises:
        UsageError: The profile has no slices.
        BadFile: The file cannot be written.
    """
    require_slices(profile)
    profile = with_sample_stacks(profile)
    trace = _Trace(profile)
    with new_file(path) as file:
        for lane in lanes(profile):
            file.writelines(trace.lane(lane))
        for track in np.flatnonzero(profile.tracks.kind == TrackKind.COUNTER).tolist():
            file.writelines(trace.counter(track))


class _Trace:
    """Packets of a profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._uuids = count(1)
        self._groups: dict[tuple[int, int], int] = {}
        self._incoming = np.zeros(len(profile.slices), np.int64)
        self._incoming[profile.flows.target] = np.arange(1, len(profile.flows) + 1)
        self._outgoing = _outgoing(profile.flows, len(profile.slices))

    def lane(self, lane: Lane) -> Iterator[bytes]:
        """Everything about one lane."""
        tree, slices = self._profile.tree, self._profile.slices
        uuid = next(self._uuids)
        yield from self._describe_lane(lane, uuid)
        nodes, text_of_row = np.unique(slices.node[lane.rows], return_inverse=True)
        texts = [message(_ANNOTATION_NAMES, number(1, _CALL_PATH), text(2, "call_path"))]
        for iid, node in enumerate(nodes.tolist(), start=1):
            path = " > ".join(tree.label(above) for above in tree.path(node)[1:-1])
            texts.append(message(_EVENT_NAMES, number(1, iid), text(2, tree.label(node))))
            texts.append(message(_ANNOTATION_STRINGS, number(1, iid), text(2, path)))
        events = _Events(slices.start_ns[lane.rows], slices.duration_ns[lane.rows])
        yield from _begin_sequence(uuid, int(events.time_ns[0]), texts)
        for begin in range(0, len(events.row), _ROWS_AT_ONCE):
            block = slice(begin, begin + _ROWS_AT_ONCE)
            row, is_begin = events.row[block], ~events.is_end[block]
            event = Messages(len(row)).numbers(_TYPE, np.where(is_begin, _SLICE_BEGIN, _SLICE_END))
            event.numbers(_NAME, text_of_row[row] + 1, is_begin)
            self._add_context(event, lane, text_of_row[row] + 1, is_begin)
            self._add_flows(event, lane.rows[row], is_begin)
            yield _packets(uuid, events.delta_ns[block], event)

    def _add_context(self, event: Messages, lane: Lane, text_number: Int64Array, is_begin: BoolArray) -> None:
        """Call paths of device slices; a host slice stands inside its callers."""
        if self._profile.tracks.kind[lane.track] == TrackKind.GPU_STREAM:
            annotation = Messages(len(text_number)).numbers(_ANNOTATION_NAME, np.full(len(text_number), _CALL_PATH))
            event.messages(_ANNOTATION, annotation.numbers(_ANNOTATION_STRING, text_number), is_begin)

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
        uuid = next(self._uuids)
        yield from self._describe(uuid, track, text(_TRACK_NAME, tracks.label(track)) + message(_COUNTER_TRACK))
        yield from _begin_sequence(uuid, int(of_track.time_ns[0]), [])
        event = Messages(len(of_track)).numbers(_TYPE, np.full(len(of_track), _COUNTER))
        yield _packets(
            uuid, np.diff(of_track.time_ns, prepend=of_track.time_ns[:1]), event.fixed64(_DOUBLE_VALUE, of_track.value)
        )

    def _describe_lane(self, lane: Lane, uuid: int) -> Iterator[bytes]:
        tracks = self._profile.tracks
        label = lane.label(tracks)
        if tracks.kind[lane.track] == TrackKind.HOST_THREAD and not lane.overflow:
            process, thread = int(tracks.unique_process[lane.track]), int(tracks.stream[lane.track])
            content = message(_THREAD, number(1, process), number(2, thread), text(5, label))
        else:
            content = text(_TRACK_NAME, label)
        yield from self._describe(uuid, lane.track, content)

    def _describe(self, uuid: int, track: int, content: bytes) -> Iterator[bytes]:
        """A track descriptor, after those of the process and the device that it stands under."""
        tracks = self._profile.tracks
        process, device = int(tracks.unique_process[track]), int(tracks.device[track])
        if (process, -1) not in self._groups:
            self._groups[process, -1] = next(self._uuids)
            yield _descriptor(
                self._groups[process, -1], message(_PROCESS, number(1, process), text(6, tracks.process_label(track)))
            )
        if (process, device) not in self._groups:
            self._groups[process, device] = next(self._uuids)
            yield _descriptor(
                self._groups[process, device],
                text(_TRACK_NAME, f"GPU {device}") + number(_PARENT, self._groups[process, -1]),
            )
        yield _descriptor(uuid, content + number(_PARENT, self._groups[process, device]))


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


def _outgoing(flows: FlowTable, n_slices: int) -> list[Int64Array]:
    """Ids of the arrows that leave each slice.

    Returns:
        As many arrays as the most arrows that leave one slice, each [n_slices]; 0 is not an arrow.
    """
    found: list[Int64Array] = []
    ids = np.arange(1, len(flows) + 1)
    sources = flows.source
    while len(sources):
        leaving, first = np.unique(sources, return_index=True)
        found.append(np.zeros(n_slices, np.int64))
        found[-1][leaving] = ids[first]
        sources, ids = np.delete(sources, first), np.delete(ids, first)
    return found


def _descriptor(uuid: int, content: bytes) -> bytes:
    return message(_PACKET, message(_TRACK_DESCRIPTOR, number(_UUID, uuid), content))


def _begin_sequence(uuid: int, time_ns: int, texts: list[bytes]) -> Iterator[bytes]:
    """The two packets that the events of a track rely on; its uuid numbers the sequence."""
    defaults = number(_TIMESTAMP_CLOCK, _SINCE_LAST_PACKET) + message(_TRACK_EVENT, number(_TRACK, uuid))
    state = message(_DEFAULTS, defaults) + message(_INTERNED, *texts)
    yield message(_PACKET, number(_SEQUENCE, uuid), number(_FLAGS, _STATE_CLEARED), state)
    own_clock = message(1, number(1, _SINCE_LAST_PACKET), number(2, time_ns), number(3, 1))
    trace_clock = message(1, number(1, _BOOTTIME), number(2, time_ns))
    yield message(_PACKET, number(_SEQUENCE, uuid), message(_CLOCK_SNAPSHOT, own_clock, trace_clock))


def _packets(uuid: int, delta_ns: Int64Array, event: Messages) -> bytes:
    packet = Messages(len(delta_ns)).numbers(_TIMESTAMP, delta_ns).numbers(_SEQUENCE, np.full(len(delta_ns), uuid))
    return Messages(len(delta_ns)).messages(_PACKET, packet.messages(_TRACK_EVENT, event)).encoded()


FORMAT = Format(
    ".perfetto-trace",
    "Perfetto trace, protocol buffers",
    next_step="open it in Perfetto",
    write=write,
)
