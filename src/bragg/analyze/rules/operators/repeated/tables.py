"""Tensors that follow from their sizes alone, and are computed anew again and again."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import WAITS
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding

_WORK = Work(
    "rebuilt-table",
    "what follows from arange() or linspace() is computed anew (positions, biases, windows, frequencies)",
    "if its sizes stay the same: compute it once, and keep it (register_buffer, functools.cache)",
    0.9,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.1,  # of a library whose own lines were not recorded, operators of one line may be far apart
    is_launched=True,
)
_COUNTS = re.compile(r"aten::(?:arange|linspace|logspace|hann_window|hamming_window|meshgrid)")
_COMPUTES = re.compile(
    r"aten::(?:arange|linspace|logspace|pow|exp|sin|cos|abs|neg|reciprocal|sub|rsub|mul|div|add|outer|ger|sign|log2?|"
    r"(?:floor_|true_)?divide|clamp|clip|minimum|maximum|where|to|_to_copy|cat|stack|repeat|ge|gt|le|lt|masked_fill_?|"
    r"full|zeros|ones|einsum|bitwise_\w+|logical_\w+|remainder|sqrt|rsqrt|fill_|tile|hann_window|hamming_window)"
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, callers = evidence.profile, evidence.callers
    counts = named(profile, _COUNTS.fullmatch) & evidence.has_work & callers.is_direct
    if float(evidence.calls[counts].sum()) < WAITS.value * evidence.steps:
        return
    follows = callers.near(named(profile, _COMPUTES.fullmatch) & callers.is_direct, counts, before=True)
    yield from work_findings(evidence, below(profile, follows), _WORK)


RULE = Rule(
    _find,
    "tensors that follow from their sizes and are made again",
    (GPU_TIME, OPERATORS),
    (WAITS,),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
