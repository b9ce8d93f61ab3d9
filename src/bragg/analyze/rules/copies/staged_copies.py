"""Copies from ordinary (pageable) memory of the host: the call lasts as long as the copy.

A timeline tells it of each copy; without one, the sums of a call path do: what PyTorch's operator took in all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, HOST_TIME
from bragg.analyze.causes.paths import hottest_place, named
from bragg.analyze.causes.thresholds import STAGED_COPY
from bragg.analyze.engine import Rule, Subject
from bragg.model import Confidence, Finding, FrameKind, Gain, Quantity, Severity
from bragg.model.table import FloatArray

__all__ = ["RULE"]

# A call for pinned memory returns after microseconds.
_STAGED = 0.5
# From 5 to 10 GB/s to 20 to 50 GB/s, and the copy runs beside kernels.
_SAVED = 0.8
_OFTEN = 0.5


def _from_timeline(evidence: Evidence) -> tuple[FloatArray, int]:
    """Time of staged copies by node, [n_nodes], and their number."""
    profile, slices = evidence.profile, evidence.slices
    is_copy = named(profile, lambda name: name == "copy HtoD")[slices.node] & ~evidence.on_host
    copies = slices.take(is_copy & (slices.duration_ns >= STAGED_COPY.value) & (slices.correlation != 0))
    calls = slices.take(evidence.on_host & (slices.correlation != 0))
    if not len(copies) or not len(calls):
        return np.zeros(len(profile.tree)), 0
    calls = calls.take(np.argsort(calls.correlation, kind="stable"))
    row = np.minimum(np.searchsorted(calls.correlation, copies.correlation), len(calls) - 1)
    is_staged = (calls.correlation[row] == copies.correlation) & (
        calls.duration_ns[row] >= _STAGED * copies.duration_ns
    )
    staged_ns = np.bincount(copies.node[is_staged], copies.duration_ns[is_staged], len(profile.tree))
    return staged_ns.astype(np.float64), int(is_staged.sum())


def _from_sums(evidence: Evidence) -> tuple[FloatArray, float]:
    """The same of operators whose own host time is that of their copies."""
    profile, tree = evidence.profile, evidence.profile.tree
    operator = np.maximum(tree.parent, 0)
    host_ns, copy_ns = (profile.own(metric).astype(np.float64) for metric in ("host_time", "gpu_time"))
    is_staged = (
        named(profile, lambda name: name == "copy HtoD")
        & (tree.kind[operator] == FrameKind.OPERATOR)
        & (copy_ns >= STAGED_COPY.value * profile.own("gpu_count"))
        & (host_ns[operator] >= _STAGED * copy_ns)
        & (copy_ns > 0)
    )
    # Paths that are not taken in most steps may lie outside of `part`.
    is_staged &= evidence.gpu_count >= _OFTEN * evidence.steps
    return np.where(is_staged, evidence.gpu_ns, 0.0), float(evidence.gpu_count[is_staged].sum())


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    staged_ns, n = (_from_timeline if evidence.has_timeline else _from_sums)(evidence)
    total_ns = float(staged_ns.sum())
    if not n or not total_ns:
        return
    # While it is copied, the call holds up the host, whatever else the GPU does.
    place = hottest_place(profile, staged_ns > 0, staged_ns)
    yield Finding(
        "pageable-copies",
        Severity.WARNING,
        f"copies from memory that is not pinned, {evidence.per_step(n):.3g} {evidence.step_word}, "
        f"{total_ns / n / 1e6:.2f} ms each: the host and the GPU wait for them",
        "pin_memory=True for the DataLoader, or tensor.pin_memory(), and .to(device, non_blocking=True)",
        node=place.node,
        file=place.file,
        line=place.line,
        evidence=(
            Quantity(f"copies {evidence.step_word}", evidence.per_step(n)),
            Quantity(f"time {evidence.step_word}", evidence.per_step(total_ns), "ns"),
        ),
        gain=Gain(min(total_ns, evidence.wall_ns) * _SAVED, evidence.wall_ns, is_measured=evidence.has_timeline)
        if evidence.wall_ns
        else None,
        confidence=Confidence.LIKELY,
    )


RULE = Rule(
    _find,
    Subject.ANALYSIS,
    "copies to the GPU from memory that is not pinned",
    (GPU_TIME, HOST_TIME),
    (STAGED_COPY,),
    "pinned memory and non_blocking=True",
)
