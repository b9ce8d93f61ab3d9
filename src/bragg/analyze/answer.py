"""The answer to where the time went, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.idle import Idle, idle_times
from bragg.analyze.idle_folded import folded_idle
from bragg.analyze.imports import imports_apart
from bragg.analyze.kernel_facts import KernelFacts
from bragg.analyze.wall.steady import steady_profile
from bragg.analyze.wall.wall_time import Steady, WallParts
from bragg.errors import UsageError
from bragg.model import FrameKind, IdleKind, Profile
from bragg.model.host_time import own_work
from bragg.model.ids import FrameId
from bragg.model.table import BoolArray, Int64Array


@dataclass(frozen=True)
class HotSpot:
    """Something that took time, wherever it was called from.

    Attributes:
        frame: A row of the frame table that it is named after.
        value: Of the answer's metric.
        share: Of the whole, 0 to 1.
        is_before: Whether it is code before this launch or call that took most of it, and launches nothing itself.
    """

    frame: FrameId
    value: float
    share: float
    is_before: bool = False


@dataclass(frozen=True)
class RoofShares:
    """Shares of GPU time by what limits its kernels, 0 to 1; for the rest the limit is not known.

    Attributes:
        compute: In kernels below the roof of arithmetic.
        memory: In kernels below the roof of memory.
        util: Share of their roofs that both reach together.
    """

    compute: float
    memory: float
    util: float


@dataclass(frozen=True)
class Answer:
    """The answer in numbers.

    Attributes:
        metric: What `hottest` are shares of; None: no time was recorded.
        total: Of that metric.
        hottest: The largest first.
        n_others: More of them, that are not listed.
        roofs: None: no kernel has both flops or bytes and a known roof.
        idle: One for each device of each process with GPU work; of the steady state where it is known.
        wall: The parts of the wall time; None: they are not known.
        host: Where the host was in the steady state, as shares of it, the largest first; empty without a timeline.
        waits: What the GPU that waited longest for the host waited for, without a timeline: as `host`.
        waits_of: Ordinal of that GPU.
        is_steady: Whether `hottest` and `total` are of the steady state alone.
        imports_ns: Of a program without a GPU, what imports took beside `total`.
    """

    metric: str | None
    total: float
    hottest: tuple[HotSpot, ...]
    n_others: int
    roofs: RoofShares | None
    idle: tuple[Idle, ...]
    wall: WallParts | None = None
    host: tuple[HotSpot, ...] = ()
    waits: tuple[HotSpot, ...] = ()
    waits_of: int = 0
    is_steady: bool = False
    imports_ns: float = 0.0


_N_HOTTEST = 3
_MOST = 0.5


def answer(evidence: Evidence, rows: Int64Array) -> Answer:
    """What took the time of a profile.

    Args:
        evidence: Of a whole run.
        rows: [n_frames]: the frame that each one is added up with, as the tables of views do.
    """
    profile, parts = evidence.profile, evidence.parts
    try:
        metric = profile.main_metric
    except UsageError:
        return Answer(None, 0.0, (), 0, None, ())
    steady = parts.steady if parts else None
    part = steady_profile(profile, steady) if steady and metric == "gpu_time" else None
    waits_of, waits = _waits(evidence, steady, rows) if steady and not len(profile.slices) else (0, ())
    ran, imports_ns = imports_apart(profile) if metric == "host_time" else (profile, 0.0)
    shown = part if part is not None and part.total(metric) > 0 else ran
    hottest = _hottest(shown, metric, rows)
    return Answer(
        metric=metric,
        total=float(shown.total(metric)),
        hottest=tuple(hottest[:_N_HOTTEST]),
        n_others=max(len(hottest) - _N_HOTTEST, 0),
        roofs=_roofs(evidence.kernels),
        idle=idle_times(profile, steady) if metric == "gpu_time" else (),
        wall=parts,
        host=_on_host(part, steady, rows) if part is not None and steady else (),
        waits=waits,
        waits_of=waits_of,
        is_steady=shown is part,
        imports_ns=imports_ns,
    )


def _on_host(part: Profile, steady: Steady, rows: Int64Array) -> tuple[HotSpot, ...]:
    if "host_time" not in part.metrics or not part.total("host_time"):
        return ()
    spots = _hottest(part, "host_time", rows)[:_N_HOTTEST]
    return tuple(replace(spot, share=spot.value / steady.duration_ns) for spot in spots)


def _waits(evidence: Evidence, steady: Steady, rows: Int64Array) -> tuple[int, tuple[HotSpot, ...]]:
    """The GPU that waited longest for the host to launch, by what it launched next or was in."""
    profile = evidence.profile
    worst = max(folded_idle(profile, steady), key=lambda found: found.late_ns, default=None)
    if worst is None:
        return 0, ()
    late = worst.rows.kind == IdleKind.LATE
    frame = rows[profile.tree.frame[worst.rows.node[late]]]
    by_frame = np.bincount(frame, weights=worst.idle_ns[late], minlength=len(rows))
    order = np.argsort(-by_frame, kind="stable")[:_N_HOTTEST]
    before = _begins_late(evidence, rows)
    return worst.device, tuple(
        HotSpot(row, float(by_frame[row]), float(by_frame[row]) / steady.duration_ns, bool(before[row]))
        for row in order[by_frame[order] > 0].tolist()
    )


def _begins_late(evidence: Evidence, rows: Int64Array) -> BoolArray:
    """By row, whether most of the wait is for code that runs before the launch or call: [n_frames]."""
    if evidence.idle_ns is None:
        return np.zeros(len(rows), np.bool_)
    row = rows[evidence.profile.tree.frame]
    waited, before = (np.bincount(row, each, len(rows)) for each in (evidence.idle_ns, evidence.code_wait_ns))
    found: BoolArray = before > _MOST * waited
    return found


def _hottest(profile: Profile, metric: str, rows: Int64Array) -> list[HotSpot]:
    """Everything with own values, added up by row, a function as its hottest line; the largest first."""
    of_frame = np.bincount(profile.tree.frame, weights=own_work(profile, metric), minlength=len(rows))
    by_row = np.bincount(rows, weights=of_frame, minlength=len(rows))
    coolest_first = np.argsort(of_frame, kind="stable")
    hottest = np.arange(len(rows))
    hottest[rows[coolest_first]] = coolest_first
    line = np.where(profile.tree.frames.kind == FrameKind.PYTHON, hottest, np.arange(len(rows)))
    total = float(profile.total(metric))
    order = np.argsort(-by_row, kind="stable")
    return [
        HotSpot(FrameId(int(line[row])), float(by_row[row]), float(by_row[row]) / total)
        for row in order[by_row[order] > 0].tolist()
    ]


def _roofs(kernels: Sequence[KernelFacts]) -> RoofShares | None:
    known = [kernel for kernel in kernels if kernel.roof_ns is not None]
    if not known:
        return None
    total_ns = sum(kernel.time_ns for kernel in kernels)
    compute_ns = sum(kernel.time_ns for kernel in known if kernel.bound == "compute")
    memory_ns = sum(kernel.time_ns for kernel in known if kernel.bound == "memory")
    roof_ns = sum(kernel.roof_ns or 0.0 for kernel in known)
    return RoofShares(compute_ns / total_ns, memory_ns / total_ns, roof_ns / sum(kernel.time_ns for kernel in known))
