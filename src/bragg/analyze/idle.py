"""When a GPU did nothing, and whom it waited for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.analyze.pauses import Pauses, pauses_of_devices
from bragg.model import Profile
from bragg.model.answer import Idle

__all__ = ["idle_times"]


def idle_times(profile: Profile) -> tuple[Idle, ...]:
    """The pauses of each device: from the timeline, else what the recorder added up."""
    found = tuple(_idle(pauses) for pauses in pauses_of_devices(profile))
    if len({idle.process for idle in found}) == 1:
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


def _idle(pauses: Pauses) -> Idle:
    """A pause is the host's fault up to the end of the launch that ended it; what is left is latency and waiting."""
    known = pauses.launch >= 0
    late = np.where(known, pauses.late_until_ns - pauses.start_ns, 0)
    queued = np.where(known, pauses.end_ns - pauses.late_until_ns, 0)
    return Idle(
        device=pauses.device,
        span_ns=pauses.span_ns,
        idle_ns=float((pauses.end_ns - pauses.start_ns).sum()),
        n_gaps=len(pauses.start_ns),
        late_launch_ns=float(late.sum()),
        queued_ns=float(queued.sum()),
        process=pauses.process,
    )
