"""Tensors that the host fills only to copy them to a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, counted, host_finding
from bragg.analyze.causes.needs import GPU_COUNT, IDLE, OPERATORS
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import OFTEN, WAITS
from bragg.analyze.causes.whole_gain import whole_gain
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, FrameKind, Quantity

_FILLS = re.compile(r"aten::(?:ones|zeros|full|fill_|rand|randn|randint|randperm|arange|eye|linspace)")
_COPY = re.compile(r"aten::(?:to|_to_copy|copy_|index(?:_\w+)?)")
_SAVED = 0.9
_CHANGE = 'make it on the GPU: device="cuda" for the call that fills it'


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, tree = evidence.profile, evidence.profile.tree
    down = tree.sum_up(named(profile, "copy HtoD".__eq__).astype(np.int64)) > 0
    copies = named(profile, _COPY.fullmatch) & down & (tree.kind == FrameKind.OPERATOR)
    # What takes long to compute is `cpu-work`, and copies that are many are `small-copies`.
    quick = ~evidence.has_work & ~evidence.compiling & (tree.sum_up(evidence.host.computing.astype(np.int64)) == 0)
    fills = evidence.callers.near(named(profile, _FILLS.fullmatch) & quick, copies)
    copies = evidence.callers.near(copies, fills)
    count = min(float(evidence.calls[fills].sum()), float(evidence.calls[copies].sum()))
    if not WAITS.value <= count / evidence.steps < OFTEN.value:
        return
    # Of copies that are more than what is filled, some are of other tensors: which of them take how long is not known.
    are_all = float(evidence.calls[copies].sum()) <= float(evidence.calls[fills].sum())
    nodes = below(profile, fills | copies if are_all else fills)
    cause = Cause(
        "host-fills",
        f"tensors are filled on the host and copied to the GPU: {counted(evidence, count)}",
        _CHANGE,
        whole_gain(evidence, nodes, _SAVED),
        Confidence.PROVEN,
        (Quantity(f"copies {evidence.step_word}", evidence.per_step(count)),),
    )
    yield host_finding(evidence, fills, evidence.calls, cause)


RULE = Rule(
    _find,
    "tensors that the host fills, and then copies to a GPU",
    (IDLE, GPU_COUNT, OPERATORS),
    (WAITS, OFTEN),
    _CHANGE,
    host_time=HostTime.CAUSE,
)
