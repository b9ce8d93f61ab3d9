"""When a GPU did nothing, and whom it waited for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.model import Profile, TrackKind
from bragg.model.answer import Idle
from bragg.model.table import Int64Array

__all__ = ["idle_times"]


def idle_times(profile: Profile) -> tuple[Idle, ...]:
    """The pauses of each device: from the timeline, else what the recorder added up.

    Processes are looked at one by one: each may call another device its first.
    """
    tracks = profile.tracks
    streams = tracks.take(tracks.kind == TrackKind.GPU_STREAM)
    pairs = sorted(set(zip(streams.process.tolist(), streams.device.tolist(), strict=True)))
    found = tuple(filter(None, (_idle_of(profile, process, device) for process, device in pairs)))
    if len({process for process, _ in pairs}) == 1:
        found = tuple(replace(idle, process=None) for idle in found)
    return found or _recorded(profile)


def _recorded(profile: Profile) -> tuple[Idle, ...]:
    first, last = profile.meta.get("gpu_first_ns"), profile.meta.get("gpu_last_ns")
    busy_ns = profile.meta.get("gpu_busy_ns")
    if not isinstance(first, int) or not isinstance(last, int) or not isinstance(busy_ns, dict) or last <= first:
        return ()
    span_ns = last - first
    return tuple(
        Idle(int(device), span_ns, max(span_ns - busy, 0))
        for device, busy in busy_ns.items()
        if device.isdecimal() and isinstance(busy, int)
    )


def _idle_of(profile: Profile, process: int, device: int) -> Idle | None:
    """Pauses of one device of a process, whose launches are found by their correlation ids; None without slices."""
    tracks, slices = profile.tracks, profile.slices
    is_on_device = (tracks.kind == TrackKind.GPU_STREAM) & (tracks.device == device) & (tracks.process == process)
    work = slices.take(is_on_device[slices.track])
    if not len(work):
        return None
    work = work.take(np.argsort(work.start_ns, kind="stable"))
    end = np.maximum.accumulate(work.start_ns + work.duration_ns)
    resumed = np.flatnonzero(work.start_ns[1:] > end[:-1]) + 1
    gap_start, gap_end = end[resumed - 1], work.start_ns[resumed]
    launched = _launch_end(profile, process, work.correlation[resumed])
    known = launched >= 0
    # A pause is the host's fault up to the end of the launch that ended it; what is left is latency and waiting.
    late = np.where(known, np.clip(launched, gap_start, gap_end) - gap_start, 0)
    queued = np.where(known, gap_end - gap_start - late, 0)
    return Idle(
        device=device,
        span_ns=float(end[-1] - work.start_ns[0]),
        idle_ns=float((gap_end - gap_start).sum()),
        n_gaps=len(resumed),
        late_launch_ns=float(late.sum()),
        queued_ns=float(queued.sum()),
        process=process,
    )


def _launch_end(profile: Profile, process: int, correlation: Int64Array) -> Int64Array:
    """When each launch was made, ns; -1 where the timeline does not have it. Ids are those of one process."""
    tracks, slices = profile.tracks, profile.slices
    is_host = (tracks.kind != TrackKind.GPU_STREAM) & (tracks.process == process)
    launches = slices.take(is_host[slices.track] & (slices.correlation != 0))
    if not len(launches):
        return np.full(len(correlation), -1, np.int64)
    order = np.argsort(launches.correlation, kind="stable")
    ids = launches.correlation[order]
    place = np.minimum(np.searchsorted(ids, correlation), len(ids) - 1)
    ends = (launches.start_ns + launches.duration_ns)[order][place]
    return np.where((ids[place] == correlation) & (correlation != 0), ends, -1)
