"""Gradients of views that are as large as the tensor that they view."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, children, named
from bragg.analyze.causes.thresholds import MANY_ROWS, MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding

_SLICES = Work(
    "view-gradients",
    "the gradient of each row or slice is filled with zeros to the size of the whole tensor, and added to the others",
    "x.unbind(dim), x.split or x.chunk for rows that are taken in a loop: their gradients are put together once",
    0.95,
    Confidence.LIKELY,
    with_host=True,
    is_launched=True,
)
_WINDOWS = Work(
    "view-gradients",
    "gradients of windows that overlap in memory are added up element by element",
    "an operator that has windows: avg_pool, max_pool, a convolution, nn.functional.unfold",
    0.8,
    Confidence.LIKELY,
    is_launched=True,
)
_OF_SLICE, _OF_WINDOW = re.compile(r"(?:Select|Slice)Backward\d*"), re.compile(r"(?:Unfold|AsStrided)Backward\d*")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    slices = named(profile, _OF_SLICE.fullmatch)
    # The gradient of a loss, which each pass begins with: a step may have several, and its number may not be known.
    passes = float(evidence.calls[children(profile, "_make_grads", "aten::ones_like")].sum())
    if float(evidence.calls[slices].sum()) >= MANY_ROWS.value * (passes or evidence.steps):
        yield from work_findings(evidence, below(profile, slices), _SLICES)
    yield from work_findings(evidence, below(profile, named(profile, _OF_WINDOW.fullmatch)), _WINDOWS)


RULE = Rule(
    _find,
    "gradients of rows, slices and windows that are as large as the tensor",
    (GPU_TIME, OPERATORS),
    (MUCH_GPU, MANY_ROWS),
    _SLICES.change,
    host_time=HostTime.CAUSE,
)
