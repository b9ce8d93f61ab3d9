"""Idle time of GPUs as the recorder has added it up: what is known without a timeline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bragg.analyze.wall.activity import activity_of
from bragg.analyze.wall.wall_time import Steady
from bragg.model import IdleKind, IdleTable, Profile
from bragg.model.table import BoolArray, FloatArray

__all__ = ["FoldedIdle", "folded_idle"]

_LATE, _QUEUED = (IdleKind.LATE, IdleKind.SHORT_LATE), (IdleKind.QUEUED, IdleKind.SHORT_QUEUED)


@dataclass(frozen=True, eq=False)
class FoldedIdle:
    """Idle time of one device of one process.

    Attributes:
        device: Its ordinal.
        span_ns: From the first to the last work, or of the steady state.
        rows: Parts of its pauses.
        share: Of each row, how much is meant: [n_rows], 0 to 1.
        idle_ns: Of each row, what is meant: [n_rows].
    """

    device: int
    span_ns: float
    rows: IdleTable
    share: FloatArray
    idle_ns: FloatArray

    @property
    def total_ns(self) -> float:
        """All of it."""
        return float(self.idle_ns.sum())

    @property
    def late_ns(self) -> float:
        """In which the host had launched nothing."""
        return float(self.idle_ns[_is(self.rows, _LATE)].sum())

    @property
    def queued_ns(self) -> float:
        """In which launched work did not run yet."""
        return float(self.idle_ns[_is(self.rows, _QUEUED)].sum())

    @property
    def n_pauses(self) -> int:
        """How many pauses, about."""
        return round(float((self.rows.count * self.share).sum()))


def folded_idle(profile: Profile, steady: Steady | None = None) -> Iterator[FoldedIdle]:
    """The idle time of each device, by process and device; nothing where the recorder has not kept it.

    The bins of call paths may be wide: in the steady state they add up to what the finer curve of the device says.

    Args:
        profile: A whole run.
        steady: The part of it to look at; None: all of it.
    """
    table = profile.idle
    activity = activity_of(profile) if steady else None
    for process, device in sorted(set(zip(table.process.tolist(), table.device.tolist(), strict=True))):
        rows = table.take((table.process == process) & (table.device == device))
        share = rows.shares(steady.begins_ns, steady.ends_ns) if steady else np.ones(len(rows))
        idle_ns = rows.idle_ns * share
        if steady is None:
            yield FoldedIdle(device, float(profile.run.gpu_span_ns), rows, share, idle_ns)
            continue
        waited = activity.waited_ns(steady.begins_ns, steady.ends_ns).get(device) if activity else None
        for kinds, exact_ns in zip((_LATE, _QUEUED), waited or (), strict=False):
            idle_ns = _scaled(idle_ns, _is(rows, kinds), exact_ns)
        yield FoldedIdle(device, float(steady.duration_ns), rows, share, idle_ns)


def _is(rows: IdleTable, kinds: tuple[IdleKind, ...]) -> BoolArray:
    return np.isin(rows.kind, kinds)


def _scaled(values: FloatArray, chosen: BoolArray, total: float) -> FloatArray:
    """Those that are chosen, in the same proportions, add up to `total`."""
    before = float(values[chosen].sum())
    return np.where(chosen, values * (total / before), values) if before else values
