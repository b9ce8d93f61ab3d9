"""The pauses of a device in a timeline: what ran before them, and the launches that ended them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bragg.model import Profile, TrackKind
from bragg.model.table import Int64Array

__all__ = ["Pauses", "pauses_of_devices"]


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

    @property
    def late_until_ns(self) -> Int64Array:
        """Until when the host had not launched what ended a pause: int64 [n_pauses], the start where it had before."""
        return np.clip(self.launched_ns, self.start_ns, self.end_ns)

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
        )


def pauses_of_devices(profile: Profile) -> Iterator[Pauses]:
    """The pauses of each device that has slices, by process and device."""
    tracks = profile.tracks
    streams = tracks.take(tracks.kind == TrackKind.GPU_STREAM)
    for owner, device in sorted(set(zip(streams.unique_process.tolist(), streams.device.tolist(), strict=True))):
        if (found := _pauses_of(profile, owner, device)) is not None:
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
    launch = _launches(profile, owner, work.correlation[resumed])
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
    )


def _launches(profile: Profile, owner: int, correlation: Int64Array) -> Int64Array:
    """The slice of each launch; -1 where the timeline does not have it. Ids are those of one process.

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
