"""Communication that nothing else runs beside."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.thresholds import EXPOSED
from bragg.analyze.engine import Rule, Subject
from bragg.model import Confidence, Finding, Gain, Quantity
from bragg.model.table import BoolArray, FloatArray, Int64Array

__all__ = ["RULE"]

_NCCL = re.compile(r"nccl", re.I)
_SAVED = 0.7


def _find(evidence: Evidence) -> Iterator[Finding]:
    if not evidence.wall_ns:
        return
    is_message = named(evidence.profile, _NCCL.search) & (evidence.gpu_ns > 0)
    exposed = _of_timeline(evidence, is_message) if evidence.has_timeline else _of_sums(evidence, is_message)
    total_ns = float(exposed.sum()) / evidence.n_devices
    if total_ns < EXPOSED.value * evidence.wall_ns or not total_ns:
        return
    least = "" if evidence.has_timeline else "at least "
    cause = Cause(
        "exposed-communication",
        f"{least}{total_ns / evidence.wall_ns * 100:.0f} % of the wall time is communication beside which nothing "
        "else runs",
        "larger buckets, gradients that are sent while others are computed, no find_unused_parameters",
        evidence=(Quantity(f"alone {evidence.step_word}", evidence.per_step(total_ns), "ns"),),
        gain=Gain(min(total_ns * _SAVED, evidence.wall_ns), evidence.wall_ns, is_measured=evidence.has_timeline),
        confidence=Confidence.LIKELY,
    )
    yield host_finding(evidence, exposed > 0, exposed, cause)


def _of_timeline(evidence: Evidence, is_message: BoolArray) -> FloatArray:
    """How long each node's messages run alone: [n_nodes]."""
    on_gpu = evidence.slices.take(~evidence.on_host)
    messages, others = on_gpu.take(is_message[on_gpu.node]), on_gpu.take(~is_message[on_gpu.node])
    exposed = messages.duration_ns - _overlap(
        messages.start_ns, messages.duration_ns, others.start_ns, others.duration_ns
    )
    by_node: FloatArray = np.bincount(messages.node, exposed, len(is_message)).astype(np.float64)
    return by_node


def _of_sums(evidence: Evidence, is_message: BoolArray) -> FloatArray:
    """The same without a timeline, at least: all that GPUs did side by side was beside a message."""
    messages_ns = float(evidence.gpu_ns[is_message].sum())
    if not messages_ns or evidence.busy is None:
        return np.zeros(len(is_message))
    busy_ns = sum(evidence.steady.busy.values()) * evidence.wall_ns if evidence.steady else 0.0
    busy_ns = busy_ns or evidence.busy * evidence.wall_ns * evidence.n_devices
    together_ns = max(float(evidence.gpu_ns.sum()) - busy_ns, 0.0)
    return np.where(is_message, evidence.gpu_ns, 0.0) * max(1 - together_ns / messages_ns, 0.0)


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
    (GPU_TIME,),
    (EXPOSED,),
    "send gradients while others are computed",
)
