"""Steps in which the host waits for a GPU, which then waits for the host.

A timeline tells how long the GPU still worked in each wait. Without one, the time in the calls that wait is known, and
that the GPU waits for the host, but not how much of that a wait made.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, HOST_TIME
from bragg.analyze.causes.paths import hottest_place
from bragg.analyze.causes.thresholds import WAITS
from bragg.analyze.engine import Rule, Subject
from bragg.analyze.wall.activity import activity_of
from bragg.model import Confidence, Finding, Gain, Quantity, Severity
from bragg.model.kernel_name import operator_name
from bragg.model.table import BoolArray, FloatArray, Int32Array, Int64Array

__all__ = ["RULE"]

_FEW = 10
# A call that finds the GPU idle takes this long, PyTorch's operator around it and its copy included (H100).
_CALL_NS = 20_000
# Of what is held up: a launch would have been late for other reasons as well.
_SAVED_BY_SUMS = 0.5


def _from_sums(evidence: Evidence) -> tuple[FloatArray, float] | None:
    """Time in which calls held up the host by node, [n_nodes], and their number."""
    profile, tree = evidence.profile, evidence.profile.tree
    is_waiting = evidence.host.waiting & (evidence.calls > 0)
    is_waiting &= ~is_waiting[np.maximum(tree.parent, 0)]
    took_ns = profile.inclusive("host_time").astype(np.float64)
    times = np.maximum(profile.own("host_count").astype(np.float64), 1)
    held_ns = np.where(is_waiting, np.maximum(took_ns / times - _CALL_NS, 0) * evidence.calls, 0.0)
    return (held_ns, float(evidence.calls[is_waiting].sum())) if held_ns.any() else None


def _from_timeline(evidence: Evidence) -> tuple[FloatArray, float] | None:
    """The same, while a GPU worked."""
    profile, activity = evidence.profile, activity_of(evidence.profile)
    slices = evidence.slices.take(evidence.on_host & evidence.host.waiting[evidence.slices.node])
    if activity is None or not len(slices) or evidence.busy is None:
        return None
    slices = slices.take(_outer(slices.track, slices.start_ns, slices.start_ns + slices.duration_ns))
    # The host is only held up while the GPU still works: the call itself costs time without a wait, too.
    ends = (slices.start_ns + slices.duration_ns).astype(np.float64)
    time_ns, busy_ns = max(activity.busy.values(), key=lambda curve: float(curve[1][-1]))
    blocked = np.interp(ends, time_ns, busy_ns) - np.interp(slices.start_ns, time_ns, busy_ns)
    by_node: FloatArray = np.zeros(len(profile.tree))
    np.add.at(by_node, slices.node, blocked)
    return by_node, float(len(slices))


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    found = (_from_timeline if evidence.has_timeline else _from_sums)(evidence)
    if found is None or not evidence.wall_ns:
        return
    held_ns, n_waits = found
    if n_waits < (WAITS.value * evidence.n_steps if evidence.n_steps else _FEW):
        return
    total_ns = float(held_ns.sum())
    late_ns = float(evidence.idle_ns.sum()) if evidence.idle_ns is not None else 0.0
    wall_ns = min(total_ns, late_ns) * (1 if evidence.has_timeline else _SAVED_BY_SUMS)
    place = hottest_place(profile, held_ns > 0, held_ns)
    names = sorted({operator_name(profile.tree.label(node)) for node in np.flatnonzero(held_ns).tolist()})
    yield Finding(
        "synchronization",
        Severity.WARNING,
        f"waits for the GPU ({', '.join(names[:3])}), {evidence.per_step(n_waits):.3g} {evidence.step_word}, hold up "
        f"the host {evidence.per_step(total_ns) / 1e6:.2f} ms, in which it could launch",
        "read results less often: keep losses on the GPU and read them every 100 steps; copy with non_blocking=True",
        node=place.node,
        file=place.file,
        line=place.line,
        evidence=(
            Quantity(f"waits {evidence.step_word}", evidence.per_step(n_waits)),
            Quantity(f"held up {evidence.step_word}", evidence.per_step(total_ns), "ns"),
        ),
        gain=Gain(
            wall_ns, evidence.wall_ns, "the GPU" if late_ns < total_ns else "", is_measured=evidence.has_timeline
        ),
        confidence=Confidence.LIKELY if evidence.has_timeline else Confidence.HEURISTIC,
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
    (GPU_TIME, HOST_TIME),
    (WAITS,),
    "read results less often; copy with non_blocking=True from pinned memory",
)
