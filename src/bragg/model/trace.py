"""What happened when: tracks, the slices on them, counters, and flows from launches to what they caused."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from bragg.model.table import FloatArray, Int32Array, Int64Array, Table, UInt8Array

__all__ = ["CounterTable", "FlowTable", "SliceTable", "TrackKind", "TrackTable", "launch_flows"]


class TrackKind(IntEnum):
    """What a track shows; the numbers of the capture format."""

    HOST_THREAD = 1
    GPU_STREAM = 2
    COUNTER = 3
    RANGES = 4
    DEVICE_UNIT = 5


@dataclass(frozen=True, eq=False)
class TrackTable(Table):
    """One lane of the timeline each.

    Attributes:
        kind: A `TrackKind`.
        process: Id of the process that was recorded.
        device: Device ordinal; -1 for host threads.
        context: Device context id; 0 for host threads; of a unit of a device (an SM, a CTA, a warp) its clock.
        stream: Stream id; the system's thread id for host threads; 0 for ranges of the process; of a unit its number.
        name: Name that the program gave; for a counter its name and unit. May be empty.
    """

    kind: UInt8Array
    process: Int32Array
    device: Int32Array
    context: Int64Array
    stream: Int64Array
    name: list[str]

    def label(self, track: int) -> str:
        """How a track is shown."""
        if self.name[track]:
            return self.name[track]
        if self.kind[track] == TrackKind.RANGES:
            return "ranges"
        if self.kind[track] == TrackKind.DEVICE_UNIT:
            return f"GPU {self.device[track]} unit {self.stream[track]}"
        if self.kind[track] == TrackKind.GPU_STREAM:
            return f"GPU {self.device[track]} stream {self.stream[track]}"
        return f"thread {self.stream[track]}"


@dataclass(frozen=True, eq=False)
class SliceTable(Table):
    """Intervals on tracks, ordered by track and then by start.

    Attributes:
        start_ns: CLOCK_REALTIME.
        duration_ns: Length, never negative.
        node: The call path that was running.
        track: Row of the track table.
        correlation: Id that a launch shares with the device slices it caused; 0 for none.
    """

    start_ns: Int64Array
    duration_ns: Int64Array
    node: Int32Array
    track: Int32Array
    correlation: Int64Array

    def sorted(self) -> SliceTable:
        """The same slices by track and then by start; at one start the longest (outermost) first."""
        # Recorders write nearly in order of start, and there a stable sort takes a tenth of a lexsort.
        by_start = np.argsort(self.start_ns, kind="stable")
        ordered = self.take(by_start[np.argsort(self.track[by_start], kind="stable")])
        same = (np.diff(ordered.start_ns) == 0) & (np.diff(ordered.track) == 0)
        if (same & (np.diff(ordered.duration_ns) > 0)).any():
            return self.take(np.lexsort((-self.duration_ns, self.start_ns, self.track)))
        return ordered


@dataclass(frozen=True, eq=False)
class CounterTable(Table):
    """Values over time.

    Attributes:
        time_ns: When the value was taken, CLOCK_REALTIME.
        track: Row of the track table, of kind counter.
        value: In the unit that the track's name gives.
    """

    time_ns: Int64Array
    track: Int32Array
    value: FloatArray


@dataclass(frozen=True, eq=False)
class FlowTable(Table):
    """Arrows from a slice to one that it caused: rows of the slice table."""

    source: Int64Array
    target: Int64Array


def launch_flows(slices: SliceTable, tracks: TrackTable) -> FlowTable:
    """Arrows from each launch on a host thread to the first slice that it caused on each device track, by target.

    A launch of a graph causes hundreds of slices in a row; an arrow to each would hide them.
    """
    on_host = tracks.kind[slices.track] == TrackKind.HOST_THREAD
    launches = np.flatnonzero(on_host & (slices.correlation != 0))
    caused = np.flatnonzero(~on_host & (slices.correlation != 0))
    if not len(launches) or not len(caused):
        return FlowTable.empty()
    targets = caused[_first_of_each(slices.correlation[caused], slices.track[caused])]
    launches = launches[np.argsort(slices.correlation[launches], kind="stable")]
    ids = slices.correlation[launches]
    place = np.minimum(np.searchsorted(ids, slices.correlation[targets]), len(ids) - 1)
    found = ids[place] == slices.correlation[targets]
    return FlowTable(source=launches[place[found]], target=targets[found])


def _first_of_each(ids: Int64Array, tracks: Int32Array) -> Int64Array:
    """Index of the first row of each pair of id and track, ascending."""
    order = np.lexsort((ids, tracks))
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (np.diff(ids[order]) != 0) | (np.diff(tracks[order]) != 0)
    return np.sort(order[is_first])
