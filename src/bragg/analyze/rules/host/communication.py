"""Communication that nothing else runs beside."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import TIMELINE
from bragg.analyze.causes.paths import hottest_place, named
from bragg.analyze.causes.thresholds import EXPOSED
from bragg.analyze.engine import Rule, Subject
from bragg.model import Confidence, Finding, Gain, Quantity, Severity
from bragg.model.table import FloatArray, Int64Array

__all__ = ["RULE"]

_NCCL = re.compile(r"nccl", re.I)
_SAVED = 0.7


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, on_gpu = evidence.profile, evidence.slices.take(~evidence.on_host)
    is_message = named(profile, _NCCL.search)[on_gpu.node]
    if not is_message.any() or not evidence.wall_ns:
        return
    messages, others = on_gpu.take(is_message), on_gpu.take(~is_message)
    exposed = messages.duration_ns - _overlap(
        messages.start_ns, messages.duration_ns, others.start_ns, others.duration_ns
    )
    by_node = np.bincount(messages.node, weights=exposed, minlength=len(profile.tree))
    total_ns = float(exposed.sum())
    if total_ns < EXPOSED.value * evidence.wall_ns:
        return
    place = hottest_place(profile, by_node > 0, by_node)
    yield Finding(
        "exposed-communication",
        Severity.WARNING,
        f"{total_ns / evidence.wall_ns * 100:.0f} % of the wall time is communication beside which nothing else runs",
        "larger buckets, gradients that are sent while others are computed, no find_unused_parameters",
        node=place.node,
        file=place.file,
        line=place.line,
        evidence=(Quantity(f"alone {evidence.step_word}", evidence.per_step(total_ns), "ns"),),
        gain=Gain(total_ns * _SAVED, evidence.wall_ns, is_measured=True),
        confidence=Confidence.LIKELY,
    )


def _overlap(
    start_ns: Int64Array, lasts_ns: Int64Array, other_ns: Int64Array, others_last_ns: Int64Array
) -> FloatArray:
    """How long anything else ran during each interval."""
    if not len(other_ns):
        return np.zeros(len(start_ns))
    order = np.argsort(other_ns, kind="stable")
    begins, ends = other_ns[order], other_ns[order] + others_last_ns[order]
    until = np.maximum.accumulate(ends)
    first = np.flatnonzero(np.append(True, begins[1:] > until[:-1]))
    opens, closes = begins[first], until[np.append(first[1:] - 1, len(until) - 1)]
    worked = np.append(0, np.cumsum(closes - opens))
    times = np.stack([opens, closes], axis=1).reshape(-1)
    values = np.stack([worked[:-1], worked[1:]], axis=1).reshape(-1)
    found: FloatArray = np.interp(start_ns + lasts_ns, times, values) - np.interp(start_ns, times, values)
    return found


RULE = Rule(
    _find,
    Subject.ANALYSIS,
    "communication that nothing runs beside",
    (TIMELINE,),
    (EXPOSED,),
    "send gradients while others are computed",
)
