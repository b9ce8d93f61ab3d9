"""Idle time of GPUs as the recorder has added it up: what is known without a timeline."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

import numpy as np

from bragg.analyze.wall.activity import Activity, activity_of, knows_idle_classes
from bragg.analyze.wall.wall_time import Steady
from bragg.model import IdleKind, IdleTable, Profile
from bragg.model.table import BoolArray, FloatArray

_LATE, _STARTED = (IdleKind.LATE, IdleKind.SHORT_LATE), (IdleKind.QUEUED, IdleKind.SHORT_QUEUED)
_WAITED, _FULL = (IdleKind.WAITED, IdleKind.SHORT_WAITED), (IdleKind.FULL_QUEUE, IdleKind.SHORT_FULL_QUEUE)
_CLASSES = (_LATE, _STARTED, _FULL, _WAITED)  # as `Waited` orders them


@dataclass(frozen=True, eq=False)
class FoldedIdle:
    """Idle time of one device of one process.

    Attributes:
        device: Its ordinal.
        span_ns: From the first to the last work, or of the steady state.
        rows: Parts of its pauses.
        share: Of each row, how much is meant: [n_rows], 0 to 1.
        idle_ns: Of each row, what is meant: [n_rows].
        knows_classes: Whether the recorder told apart why launched work did not run.
    """

    device: int
    span_ns: float
    rows: IdleTable
    share: FloatArray
    idle_ns: FloatArray
    knows_classes: bool

    @property
    def total_ns(self) -> float:
        """All of it."""
        return float(self.idle_ns.sum())

    @property
    def late_ns(self) -> float:
        """In which the host had launched nothing."""
        return self._sum(_LATE)

    @property
    def queued_ns(self) -> float:
        """In which launched work did not run yet."""
        return self._sum(_STARTED + _WAITED + _FULL)

    @property
    def waited_ns(self) -> float | None:
        """Of these, what was for another stream, a copy or an event."""
        return self._sum(_WAITED) if self.knows_classes else None

    @property
    def full_queue_ns(self) -> float | None:
        """Of these, what took the device from one piece of work to the next of a full queue."""
        return self._sum(_FULL) if self.knows_classes else None

    @property
    def n_pauses(self) -> int:
        """How many pauses, about."""
        return round(float((self.rows.count * self.share).sum()))

    def _sum(self, kinds: tuple[IdleKind, ...]) -> float:
        return float(self.idle_ns[_is(self.rows, kinds)].sum())


def folded_idle(
    profile: Profile, steady: Steady | None = None, devices: Container[int] | None = None
) -> Iterator[FoldedIdle]:
    """The idle time of each device, by process and device; nothing where the recorder has not kept it.

    The bins of call paths may be wide: where one begins or ends outside of the steady state, and for the sums, the
    finer curve of the device tells how much of each class is meant.

    Args:
        profile: A whole run.
        steady: The part of it to look at; None: all of it.
        devices: Ordinals of the devices that are meant; None: all.
    """
    table = profile.idle
    activity = activity_of(profile) if steady else None
    knows_classes = knows_idle_classes(profile)
    for process, device in sorted(set(zip(table.process.tolist(), table.device.tolist(), strict=True))):
        if devices is not None and device not in devices:
            continue
        rows = table.take((table.process == process) & (table.device == device))
        if steady is None:
            share, span_ns = np.ones(len(rows)), float(profile.run.gpu_span_ns)
            yield FoldedIdle(device, span_ns, rows, share, rows.idle_ns * share, knows_classes)
            continue
        share = _shares(rows, steady, activity, device)
        idle_ns = rows.idle_ns * share
        edges = np.array([steady.begins_ns, steady.ends_ns])
        if activity and (waited := activity.waited_until(device, edges)) is not None:
            for kinds, until_ns in zip(_CLASSES, waited, strict=True):
                idle_ns = _scaled(idle_ns, _is(rows, kinds), float(until_ns[1] - until_ns[0]))
        yield FoldedIdle(device, float(steady.duration_ns), rows, share, idle_ns, knows_classes)


def _shares(rows: IdleTable, steady: Steady, activity: Activity | None, device: int) -> FloatArray:
    """How much of each row is of the steady state: [n_rows], 0 to 1."""
    share = rows.shares(steady.begins_ns, steady.ends_ns)
    begins_ns, ends_ns = rows.start_ns, rows.start_ns + rows.bin_ns
    inside = (np.clip(each, steady.begins_ns, steady.ends_ns) for each in (begins_ns, ends_ns))
    moments_ns = np.concatenate([begins_ns, *inside, ends_ns])
    waited = activity.waited_until(device, moments_ns) if activity else None
    for kinds, until_ns in zip(_CLASSES, waited or (), strict=False):
        begin, first, last, end = until_ns.reshape(4, -1)
        chosen = _is(rows, kinds) & (end > begin)
        share[chosen] = np.clip((last - first)[chosen] / (end - begin)[chosen], 0, 1)
    return share


def _is(rows: IdleTable, kinds: tuple[IdleKind, ...]) -> BoolArray:
    return np.isin(rows.kind, kinds)


def _scaled(values: FloatArray, chosen: BoolArray, total: float) -> FloatArray:
    """Those that are chosen, in the same proportions, add up to `total`."""
    before = float(values[chosen].sum())
    return np.where(chosen, values * (total / before), values) if before else values
