"""Copies from ordinary (pageable) memory of the host: the call lasts as long as the copy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding
from bragg.analyze.causes.needs import GPU_TIME, HOST_TIME
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import STAGED_COPY, WAITS
from bragg.analyze.engine import Rule, Subject
from bragg.model import Confidence, Finding, Gain, Quantity
from bragg.model.table import FloatArray

__all__ = ["RULE"]

# A call for pinned memory returns after microseconds.
_STAGED = 0.5
# From 5 to 10 GB/s to 20 to 50 GB/s, and the copy runs beside kernels.
_SAVED = 0.8


def _find(evidence: Evidence) -> Iterator[Finding]:
    count, staged_ns = _of_timeline(evidence) if evidence.has_timeline else _of_sums(evidence)
    n, total_ns = float(count.sum()), float(staged_ns.sum())
    if not n:
        return
    # While it is copied, the call holds up the host, whatever else the GPU does.
    wall_ns = min(total_ns * _SAVED, evidence.wall_ns)
    cause = Cause(
        "pageable-copies",
        f"copies from memory that is not pinned, {evidence.per_step(n):.3g} {evidence.step_word}, "
        f"{total_ns / n / 1e6:.2f} ms each: the host and the GPU wait for them",
        "pin_memory=True for the DataLoader, or tensor.pin_memory(), and .to(device, non_blocking=True)",
        evidence=(
            Quantity(f"copies {evidence.step_word}", evidence.per_step(n)),
            Quantity(f"time {evidence.step_word}", evidence.per_step(total_ns), "ns"),
        ),
        gain=Gain(wall_ns, evidence.wall_ns, is_measured=evidence.has_timeline) if evidence.wall_ns else None,
        confidence=Confidence.LIKELY,
    )
    yield host_finding(evidence, staged_ns > 0, staged_ns, cause)


def _of_timeline(evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """Of each node, how many long copies whose calls lasted as long, and how long: each [n_nodes]."""
    slices, n_nodes = evidence.slices, len(evidence.profile.tree)
    is_copy = named(evidence.profile, "copy HtoD".__eq__)[slices.node] & ~evidence.on_host
    copies = slices.take(is_copy & (slices.duration_ns >= STAGED_COPY.value) & (slices.correlation != 0))
    calls = slices.take(evidence.on_host & (slices.correlation != 0))
    if not len(copies) or not len(calls):
        return np.zeros(n_nodes), np.zeros(n_nodes)
    calls = calls.take(np.argsort(calls.correlation, kind="stable"))
    row = np.minimum(np.searchsorted(calls.correlation, copies.correlation), len(calls) - 1)
    staged = copies.take(
        (calls.correlation[row] == copies.correlation) & (calls.duration_ns[row] >= _STAGED * copies.duration_ns)
    )
    count = np.bincount(staged.node, minlength=n_nodes).astype(np.float64)
    return count, np.bincount(staged.node, staged.duration_ns, n_nodes).astype(np.float64)


def _of_sums(evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """The same without a timeline: by the mean copy of a node, and the time of the operator or call above it.

    A model is moved to its GPU once, with one copy for each parameter.
    """
    profile, tree = evidence.profile, evidence.profile.tree
    often = (evidence.gpu_count >= WAITS.value * evidence.steps) & ~below(
        profile, named(profile, "Module._apply".__eq__)
    )
    is_copy = named(profile, "copy HtoD".__eq__) & (evidence.gpu_count > 0) & (tree.parent >= 0)
    above = np.maximum(tree.parent, 0)
    is_long = evidence.gpu_ns >= STAGED_COPY.value * evidence.gpu_count
    lasts = (evidence.calls[above] > 0) & (evidence.host_ns[above] >= _STAGED * evidence.gpu_ns)
    staged = is_copy & often & is_long & lasts
    return np.where(staged, evidence.gpu_count, 0.0), np.where(staged, evidence.gpu_ns, 0.0)


RULE = Rule(
    _find,
    Subject.ANALYSIS,
    "copies to the GPU from memory that is not pinned",
    (GPU_TIME, HOST_TIME),
    (STAGED_COPY, WAITS),
    "pinned memory and non_blocking=True",
)
