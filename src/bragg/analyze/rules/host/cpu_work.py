"""Operators that compute on the CPU while a GPU waits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import IDLE, OPERATORS
from bragg.analyze.causes.paths import hottest_place
from bragg.analyze.causes.thresholds import CPU_CALL, PLAN_SHARE
from bragg.analyze.engine import Rule, Subject
from bragg.model import Confidence, Finding, Quantity, Severity
from bragg.model.kernel_name import operator_name

__all__ = ["RULE"]

_SAVED = 0.95
_RANDOM = frozenset(["aten::normal_", "aten::uniform_", "aten::random_", "aten::bernoulli_", "aten::randperm"])


def _find(evidence: Evidence) -> Iterator[Finding]:
    tree, idle_ns = evidence.profile.tree, evidence.idle_ns
    if idle_ns is None:
        return
    names = [operator_name(name) for name in tree.frames.name]
    nodes = np.flatnonzero(evidence.host.computing)
    for name in sorted({names[frame] for frame in tree.frame[nodes].tolist()}):
        chosen = evidence.host.computing & np.array([each == name for each in names], np.bool_)[tree.frame]
        calls, waited_ns = float(evidence.calls[chosen].sum()), float(idle_ns[chosen].sum())
        place = hottest_place(evidence.profile, chosen, idle_ns)
        yield Finding(
            "cpu-work",
            Severity.WARNING,
            f"{name} computes on the CPU, {waited_ns / max(calls, 1) / 1e6:.2f} ms at each of {calls:,.0f} calls, "
            "and the GPU waits",
            'make it on the GPU: device="cuda"' if name in _RANDOM else "move it to the GPU, or to DataLoader workers",
            node=place.node,
            file=place.file,
            line=place.line,
            evidence=(Quantity("calls", calls), Quantity("wait for each call", waited_ns / max(calls, 1), "ns")),
            gain=evidence.host_gain(chosen, _SAVED),
            confidence=Confidence.LIKELY,
        )


RULE = Rule(
    _find,
    Subject.ANALYSIS,
    "operators that compute on the CPU while the GPU waits",
    (OPERATORS, IDLE),
    (CPU_CALL, PLAN_SHARE),
    'make data on the GPU (device="cuda"), or prepare it in workers',
)
