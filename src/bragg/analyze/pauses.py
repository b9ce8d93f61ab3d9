"""The pauses of a device in a timeline: what ran before them, and the launches that ended them."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

import numpy as np

from bragg.model import FrameKind, Profile, SliceTable, TrackKind
from bragg.model.table import BoolArray, Int64Array

START_NS = 10_000
"""From the end of a launch to its start on a device that is free, and from one kernel of a stream to the next: 99 of
100 take at most 3.3 us, all but 22 of 70,000 less than this (five programs on an H100). What takes longer waits."""


@dataclass(frozen=True, eq=False)
class Pauses:
    """When a device did nothing between its first and its last work, on any stream.

    Attributes:
        process: Id of the process whose work it was; each may call another device its first.
        owner: Its number in the track table, which no other process has.
        device: Its ordinal.
        begins_ns: When the first work began.
        span_ns: From the first to the last work.
        start_ns: int64 [n_pauses], ascending.
        end_ns: int64 [n_pauses].
        last_work: int64 [n_pauses]: the slice at whose end each pause began.
        next_work: int64 [n_pauses]: the slice that ended each pause.
        launch: int64 [n_pauses]: the slice of the launch that ended each pause; -1 where the timeline does not have it.
        launched_ns: int64 [n_pauses]: when that launch was made; -1 if it is not known.
        is_behind_own: bool [n_pauses]: what ran before each pause was of the same stream as what ended it, and both
            were copies or neither: the one was queued behind the other.
    """

    process: int
    owner: int
    device: int
    begins_ns: int
    span_ns: int
    start_ns: Int64Array
    end_ns: Int64Array
    last_work: Int64Array
    next_work: Int64Array
    launch: Int64Array
    launched_ns: Int64Array
    is_behind_own: BoolArray

    @property
    def late_until_ns(self) -> Int64Array:
        """Until when the host had not launched what ended a pause: int64 [n_pauses], the start where it had before."""
        return np.clip(self.launched_ns, self.start_ns, self.end_ns)

    @property
    def starts_until_ns(self) -> Int64Array:
        """Until when what ended a pause could not have begun after its launch: int64 [n_pauses]."""
        return np.clip(self.launched_ns + START_NS, self.start_ns, self.end_ns)

    @property
    def changes_until_ns(self) -> Int64Array:
        """Until when its queue went on to what ended a pause, which waited from then on: int64 [n_pauses]."""
        changed: Int64Array = np.where(self.is_behind_own, self.start_ns + START_NS, self.start_ns)
        return np.clip(changed, self.starts_until_ns, self.end_ns)

    def during(self, start_ns: int, end_ns: int) -> Pauses:
        """The parts of the pauses that lie between two times; these become the span."""
        inside = (self.end_ns > start_ns) & (self.start_ns < end_ns)
        return replace(
            self,
            begins_ns=start_ns,
            span_ns=end_ns - start_ns,
            start_ns=np.maximum(self.start_ns[inside], start_ns),
            end_ns=np.minimum(self.end_ns[inside], end_ns),
            last_work=self.last_work[inside],
            next_work=self.next_work[inside],
            launch=self.launch[inside],
            launched_ns=self.launched_ns[inside],
            is_behind_own=self.is_behind_own[inside],
        )


def pauses_of_devices(profile: Profile, devices: Container[int] | None = None) -> Iterator[Pauses]:
    """The pauses of each device that has slices, by process and device.

    Args:
        profile: With a timeline.
        devices: Ordinals of those that are meant; None: all.
    """
    tracks = profile.tracks
    streams = tracks.take(tracks.kind == TrackKind.GPU_STREAM)
    for owner, device in sorted(set(zip(streams.unique_process.tolist(), streams.device.tolist(), strict=True))):
        is_meant = devices is None or device in devices
        if is_meant and (found := _pauses_of(profile, owner, device)) is not None:
            yield found


def _pauses_of(profile: Profile, owner: int, device: int) -> Pauses | None:
    tracks, slices = profile.tracks, profile.slices
    is_on_device = (tracks.kind == TrackKind.GPU_STREAM) & (tracks.device == device) & (tracks.unique_process == owner)
    rows = np.flatnonzero(is_on_device[slices.track])
    if not len(rows):
        return None
    rows = rows[np.argsort(slices.start_ns[rows], kind="stable")]
    work = slices.take(rows)
    own_end = work.start_ns + work.duration_ns
    end = np.maximum.accumulate(own_end)
    # Which work has lasted longest so far.
    last = np.maximum.accumulate(np.where(own_end == end, np.arange(len(rows)), 0))
    resumed = np.flatnonzero(work.start_ns[1:] > end[:-1]) + 1
    launch = launches_of(profile, owner, work.correlation[resumed])
    made = (slices.start_ns + slices.duration_ns)[launch] if len(slices) else launch
    return Pauses(
        process=int(tracks.process[work.track[0]]),
        owner=owner,
        device=device,
        begins_ns=int(work.start_ns[0]),
        span_ns=int(end[-1] - work.start_ns[0]),
        start_ns=end[resumed - 1],
        end_ns=work.start_ns[resumed],
        last_work=rows[last[resumed - 1]],
        next_work=rows[resumed],
        launch=launch,
        launched_ns=np.where(launch >= 0, made, -1),
        is_behind_own=_are_of_one_queue(profile, work, last[resumed - 1], resumed),
    )


def _are_of_one_queue(profile: Profile, work: SliceTable, before: Int64Array, after: Int64Array) -> BoolArray:
    """Whether pairs of work ran one behind the other by themselves: a kernel waits for a copy, also on its stream."""
    frames = profile.tree.frames
    names = map(str.lower, frames.name)
    is_set = np.array([name.startswith("set") or "memset" in name for name in names], np.bool_)
    is_copy = ((frames.kind == FrameKind.MEMORY) & ~is_set)[profile.tree.frame[work.node]]
    found: BoolArray = (work.track[before] == work.track[after]) & (is_copy[before] == is_copy[after])
    return found


def launches_of(profile: Profile, owner: int, correlation: Int64Array) -> Int64Array:
    """The slice of each launch by its correlation id, both int64 [n]; -1 where the timeline does not have it.

    Ids are those of one process, `owner` in the track table.

    PyTorch's traces show each GPU as a process of its own, which has no threads.
    """
    tracks, slices = profile.tracks, profile.slices
    is_thread = ~np.isin(tracks.kind, (TrackKind.GPU_STREAM, TrackKind.DEVICE_UNIT, TrackKind.SAMPLES))
    have_both = np.isin(tracks.unique_process[~is_thread], tracks.unique_process[is_thread]).any()
    is_host = is_thread & ((tracks.unique_process == owner) | ~have_both)
    launches = np.flatnonzero(is_host[slices.track] & (slices.correlation != 0))
    if not len(launches):
        return np.full(len(correlation), -1, np.int64)
    launches = launches[np.argsort(slices.correlation[launches], kind="stable")]
    ids = slices.correlation[launches]
    place = np.minimum(np.searchsorted(ids, correlation), len(ids) - 1)
    return np.where((ids[place] == correlation) & (correlation != 0), launches[place], -1)
