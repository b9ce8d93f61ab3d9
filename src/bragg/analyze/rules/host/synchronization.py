"""Steps in which the host waits for a GPU, which then waits for the host."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, TIMELINE
from bragg.analyze.causes.paths import hottest_place
from bragg.analyze.causes.thresholds import WAITS
from bragg.analyze.engine import Rule, Subject
from bragg.analyze.wall.activity import activity_of
from bragg.model import Confidence, Finding, Gain, Quantity, Severity
from bragg.model.kernel_name import operator_name
from bragg.model.table import BoolArray, FloatArray, Int32Array, Int64Array

__all__ = ["RULE"]

_FEW = 10


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, activity = evidence.profile, activity_of(evidence.profile)
    slices = evidence.slices.take(evidence.on_host & evidence.host.waiting[evidence.slices.node])
    if activity is None or not len(slices) or evidence.busy is None:
        return
    slices = slices.take(_outer(slices.track, slices.start_ns, slices.start_ns + slices.duration_ns))
    n_waits = len(slices)
    if n_waits < (WAITS.value * evidence.n_steps if evidence.n_steps else _FEW):
        return
    # The host is only held up while the GPU still works: the call itself costs time without a wait, too.
    ends = (slices.start_ns + slices.duration_ns).astype(np.float64)
    time_ns, busy_ns = max(activity.busy.values(), key=lambda curve: float(curve[1][-1]))
    blocked = np.interp(ends, time_ns, busy_ns) - np.interp(slices.start_ns, time_ns, busy_ns)
    by_node: FloatArray = np.zeros(len(profile.tree))
    np.add.at(by_node, slices.node, blocked)
    late_ns = float(evidence.idle_ns.sum()) if evidence.idle_ns is not None else 0.0
    wall_ns = min(float(blocked.sum()), late_ns)
    place = hottest_place(profile, by_node > 0, by_node)
    names = sorted({operator_name(profile.tree.label(node)) for node in np.unique(slices.node).tolist()})
    yield Finding(
        "synchronization",
        Severity.WARNING,
        f"waits for the GPU ({', '.join(names[:3])}), {evidence.per_step(n_waits):.3g} {evidence.step_word}, hold up "
        f"the host {evidence.per_step(float(blocked.sum())) / 1e6:.2f} ms, in which it could launch",
        "read results less often: keep losses on the GPU and read them every 100 steps; copy with non_blocking=True",
        node=place.node,
        file=place.file,
        line=place.line,
        evidence=(
            Quantity(f"waits {evidence.step_word}", evidence.per_step(n_waits)),
            Quantity(f"held up {evidence.step_word}", evidence.per_step(float(blocked.sum())), "ns"),
        ),
        gain=Gain(wall_ns, evidence.wall_ns, "the GPU" if late_ns < float(blocked.sum()) else "", is_measured=True),
        confidence=Confidence.LIKELY,
    )


def _outer(track: Int32Array, start_ns: Int64Array, end_ns: Int64Array) -> BoolArray:
    """Slices that are in no other one of their thread."""
    order = np.lexsort((-end_ns, start_ns, track))
    result = np.zeros(len(track), np.bool_)
    for one in np.unique(track).tolist():
        rows = order[track[order] == one]
        until = np.maximum.accumulate(end_ns[rows])
        result[rows[np.append(True, start_ns[rows][1:] >= until[:-1])]] = True
    return result


RULE = Rule(
    _find,
    Subject.ANALYSIS,
    "waits for the GPU in each step: item, cpu, nonzero, synchronize",
    (GPU_TIME, TIMELINE),
    (WAITS,),
    "read results less often; copy with non_blocking=True from pinned memory",
)
