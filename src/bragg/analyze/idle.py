"""When a GPU did nothing, and whom it waited for."""

from __future__ import annotations

import numpy as np

from bragg.model import Profile, SliceTable, TrackKind
from bragg.model.answer import Idle
from bragg.model.table import Int64Array

__all__ = ["idle_times"]


def idle_times(profile: Profile) -> tuple[Idle, ...]:
    """The pauses of each device: from the timeline, else what the recorder added up."""
    tracks = profile.tracks
    devices = np.unique(tracks.device[tracks.kind == TrackKind.GPU_STREAM]).tolist()
    found = tuple(filter(None, (_idle_of(profile, device) for device in devices)))
    return found or _recorded(profile)


def _recorded(profile: Profile) -> tuple[Idle, ...]:
    first, last = profile.meta.get("gpu_first_ns"), profile.meta.get("gpu_last_ns")
    busy_ns = profile.meta.get("gpu_busy_ns")
    if not isinstance(first, int) or not isinstance(last, int) or not isinstance(busy_ns, dict) or last <= first:
        return ()
    span_ns = last - first
    return tuple(Idle(int(device), span_ns, max(span_ns - busy, 0)) for device, busy in busy_ns.items())


def _idle_of(profile: Profile, device: int) -> Idle | None:
    """Pauses of one device, whose launches are found by their correlation ids; None without slices."""
    tracks, slices = profile.tracks, profile.slices
    is_on_device = (tracks.kind == TrackKind.GPU_STREAM) & (tracks.device == device)
    work = slices.take(is_on_device[slices.track])
    if not len(work):
        return None
    work = work.take(np.argsort(work.start_ns, kind="stable"))
    end = np.maximum.accumulate(work.start_ns + work.duration_ns)
    resumed = np.flatnonzero(work.start_ns[1:] > end[:-1]) + 1
    gap_start, gap_end = end[resumed - 1], work.start_ns[resumed]
    launched = _launch_end(profile, work.correlation[resumed])
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
    )


def _launch_end(profile: Profile, correlation: Int64Array) -> Int64Array:
    """When each launch was made, ns; -1 where the timeline does not have it."""
    is_launch = (profile.tracks.kind != TrackKind.GPU_STREAM)[profile.slices.track] & (profile.slices.correlation != 0)
    launches: SliceTable = profile.slices.take(is_launch)
    if not len(launches):
        return np.full(len(correlation), -1, np.int64)
    order = np.argsort(launches.correlation, kind="stable")
    ids = launches.correlation[order]
    place = np.minimum(np.searchsorted(ids, correlation), len(ids) - 1)
    ends = (launches.start_ns + launches.duration_ns)[order][place]
    return np.where((ids[place] == correlation) & (correlation != 0), ends, -1)
