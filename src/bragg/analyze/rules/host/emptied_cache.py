"""Steps that give memory back to the driver: samples show it where calls of the GPU's API were not recorded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding, three_digits
from bragg.analyze.causes.needs import API_CALLS, HOST_TIME, IDLE
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import PLAN_SHARE
from bragg.analyze.engine import HostTime, Rule
from bragg.analyze.rules.host.allocator import CHANGE, emptying_gain
from bragg.model import Confidence, Finding, FrameKind, Quantity

_FEW = 3  # samples: one may be of the end of the program


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    frees = named(profile, "empty_cache".__eq__) & (profile.tree.kind == FrameKind.PYTHON)
    if "samples" not in profile.metrics or API_CALLS.is_met(evidence):
        return  # calls are counted by another rule
    nodes = below(profile, frees)
    samples = float(np.nan_to_num(profile.own("samples").astype(np.float64))[nodes].sum())
    took_ns = float(evidence.host_ns[nodes].sum())
    if samples < _FEW or took_ns < PLAN_SHARE.value * evidence.wall_ns:
        return
    cause = Cause(
        "emptied-cache",
        f"giving memory back takes {three_digits(evidence.per_step(took_ns) / 1e6)} ms {evidence.step_word} "
        f"({samples:.0f} samples), and the program allocates it again",
        CHANGE,
        emptying_gain(evidence, took_ns),
        Confidence.LIKELY,
        (
            Quantity("samples", samples),
            Quantity(f"time {evidence.step_word}", evidence.per_step(took_ns), "ns"),
        ),
    )
    yield host_finding(evidence, nodes, evidence.host_ns, cause)


RULE = Rule(
    _find, "torch.cuda.empty_cache() in the steps", (HOST_TIME, IDLE), (PLAN_SHARE,), CHANGE, host_time=HostTime.CAUSE
)
