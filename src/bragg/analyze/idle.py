"""When a GPU did nothing, and whom it waited for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bragg.analyze.idle_folded import folded_idle
from bragg.analyze.pauses import Pauses, pauses_of_devices
from bragg.analyze.wall.wall_time import Steady
from bragg.model import Profile


@dataclass(frozen=True)
class Idle:
    """When a device did nothing between its first and its last work, or in the steady state.

    Attributes:
        device: Its ordinal.
        span_ns: From the first to the last work, or of the steady state.
        idle_ns: Part of the span in which nothing ran.
        n_gaps: Pauses; None: not known.
        late_launch_ns: Part of `idle_ns` that ended because the host launched too late; None if it is not known.
        queued_ns: Part in which launched work did not run yet; None: not known. The reason of the rest is unknown.
        waited_ns: Part of `queued_ns` in which it waited for another stream, a copy or an event; None: not known.
        full_queue_ns: Part of `queued_ns` in which its queue was full: the device went on from what had ended to what
            was queued behind it. None: not known. What is left of `queued_ns` are starts right after their launches.
        process: Id of the process whose work it was; None: of all, or only one was recorded.
        is_steady: Whether it is of the steady state alone.
    """

    device: int
    span_ns: float
    idle_ns: float
    n_gaps: int | None = None
    late_launch_ns: float | None = None
    queued_ns: float | None = None
    waited_ns: float | None = None
    full_queue_ns: float | None = None
    process: int | None = None
    is_steady: bool = False

    @property
    def share(self) -> float:
        """Of the span, 0 to 1."""
        return self.idle_ns / self.span_ns if self.span_ns else 0.0


def idle_times(profile: Profile, steady: Steady | None = None) -> tuple[Idle, ...]:
    """The pauses of each device: from the timeline, else what the recorder added up.

    Args:
        profile: A whole run.
        steady: The part of it to look at; None: all of it.
    """
    pauses = list(_pauses(profile, steady))
    found = tuple(map(_idle, pauses))
    if steady is not None:
        found = tuple(replace(idle, is_steady=True) for idle in found or _folded(profile, steady)) or _of_curve(steady)
    if len({each.owner for each in pauses}) == 1:
        found = tuple(replace(idle, process=None) for idle in found)
    return found or _folded(profile, None) or _recorded(profile)


def _pauses(profile: Profile, steady: Steady | None) -> Iterator[Pauses]:
    for pauses in pauses_of_devices(profile):
        yield pauses if steady is None else pauses.during(steady.begins_ns, steady.ends_ns)


def _folded(profile: Profile, steady: Steady | None) -> tuple[Idle, ...]:
    return tuple(
        Idle(
            *(each.device, each.span_ns, each.total_ns, each.n_pauses, each.late_ns, each.queued_ns),
            *(each.waited_ns, each.full_queue_ns),
        )
        for each in folded_idle(profile, steady)
    )


def _of_curve(steady: Steady) -> tuple[Idle, ...]:
    """How long, but not why."""
    span_ns = float(steady.duration_ns)
    return tuple(Idle(device, span_ns, (1 - busy) * span_ns, is_steady=True) for device, busy in steady.busy.items())


def _recorded(profile: Profile) -> tuple[Idle, ...]:
    span_ns = profile.run.gpu_span_ns
    busy_ns = profile.run.gpu_busy_ns if span_ns else {}
    return tuple(Idle(device, span_ns, max(span_ns - busy, 0)) for device, busy in busy_ns.items())


def _idle(pauses: Pauses) -> Idle:
    """A pause is the host's fault up to the end of the launch that ended it; what is left is latency and waiting."""
    known = pauses.launch >= 0
    late = np.where(known, pauses.late_until_ns - pauses.start_ns, 0)
    queued = np.where(known, pauses.end_ns - pauses.late_until_ns, 0)
    changed = np.where(known, pauses.changes_until_ns - pauses.starts_until_ns, 0)
    waited = np.where(known, pauses.end_ns - pauses.changes_until_ns, 0)
    return Idle(
        device=pauses.device,
        span_ns=pauses.span_ns,
        idle_ns=float((pauses.end_ns - pauses.start_ns).sum()),
        n_gaps=len(pauses.start_ns),
        late_launch_ns=float(late.sum()),
        queued_ns=float(queued.sum()),
        waited_ns=float(waited.sum()),
        full_queue_ns=float(changed.sum()),
        process=pauses.process,
    )
