"""What happened when: tracks, the slices on them, counters, and flows from launches to what they caused."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

import numpy as np

from bragg.model.table import FloatArray, Int32Array, Int64Array, Table, UInt8Array


class TrackKind(IntEnum):
    """What a track shows; the numbers of the capture format."""

    HOST_THREAD = 1
    GPU_STREAM = 2
    COUNTER = 3
    RANGES = 4
    DEVICE_UNIT = 5
    SAMPLES = 6


@dataclass(frozen=True, eq=False)
class TrackTable(Table):
    """One lane of the timeline each.

    Attributes:
        kind: A `TrackKind`.
        process: Id of the process that was recorded; two hosts may have one of the same id.
        device: Device ordinal; -1 for host threads.
        context: Device context id; 0 for host threads; of a unit of a device (an SM, a CTA, a warp) its clock.
        stream: Stream id; the system's thread id for host threads and samples of them; 0 for ranges of the process; of
            a unit its number.
        name: Name that the program gave; for a counter its name and unit. May be empty.
        rank: Rank of the process in a distributed job; -1: it is alone, or not known.
        host: Machine of the process; empty: not known.
    """

    kind: UInt8Array
    process: Int32Array
    device: Int32Array
    context: Int64Array
    stream: Int64Array
    name: list[str]
    rank: Int32Array = field(default_factory=lambda: np.empty(0, np.int32))
    host: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        n_tracks = len(self.kind)
        if not len(self.rank):
            object.__setattr__(self, "rank", np.full(n_tracks, -1, np.int32))
        if not self.host:
            object.__setattr__(self, "host", [""] * n_tracks)
        super().__post_init__()

    @cached_property
    def unique_process(self) -> Int32Array:
        """A number of its own for the process of each track: int32 [n_tracks].

        That is its id; of processes on several hosts that share an id, the first one's is.
        """
        number_of: dict[tuple[int, int, str], int] = {}
        unused = int(self.process.max(initial=0))
        for owner in zip(self.process.tolist(), self.rank.tolist(), self.host, strict=True):
            if owner not in number_of:
                is_taken = owner[0] in number_of.values()
                unused += is_taken
                number_of[owner] = unused if is_taken else owner[0]
        owners = zip(self.process.tolist(), self.rank.tolist(), self.host, strict=True)
        return np.array([number_of[owner] for owner in owners], np.int32)

    def process_label(self, track: int) -> str:
        """What the process of a track is called; with its host where the id alone does not tell."""
        process, host = int(self.process[track]), self.host[track]
        is_shared = len({*self.unique_process[self.process == process].tolist()}) > 1
        return f"process {process} on {host or 'an unknown host'}" if is_shared else f"process {process}"

    def label(self, track: int) -> str:
        """How a track is shown."""
        if self.name[track]:
            return self.name[track]
        if self.kind[track] == TrackKind.RANGES:
            return "ranges"
        if self.kind[track] == TrackKind.DEVICE_UNIT:
            return f"GPU {self.device[track]} unit {self.stream[track]}"
        if self.kind[track] == TrackKind.SAMPLES:
            return f"samples of thread {self.stream[track]}"
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

    def outermost(self) -> SliceTable:
        """Without slices inside of another one of the same call path and track, which repeat it; by call path."""
        ordered = self.take(np.lexsort((-self.duration_ns, self.start_ns, self.track, self.node)))
        begins_ns = ordered.start_ns - (ordered.start_ns.min() if len(ordered) else 0)
        ends_ns = begins_ns + ordered.duration_ns
        is_first = np.append(True, (np.diff(ordered.node) != 0) | (np.diff(ordered.track) != 0))[: len(ordered)]
        # Each path and track behind the one before, so that one maximum goes over all.
        shift_ns = np.cumsum(is_first) * ends_ns.max(initial=0)
        until_ns = np.append(0, np.maximum.accumulate(ends_ns + shift_ns))[: len(ordered)]
        return ordered.take(is_first | (begins_ns + shift_ns >= until_ns))


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
