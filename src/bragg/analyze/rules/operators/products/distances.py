"""Distances of all pairs of rows, whose differences go through memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, beside, named
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding

_WORK = Work(
    "pairwise-differences",
    "differences of all pairs of rows are written, and read again to be added up",
    "torch.cdist(a, b), or a.square().sum(1)[:, None] + b.square().sum(1) - 2 * a @ b.T: no pair is written",
    0.9,
    Confidence.HEURISTIC,
    is_launched=True,
)
_MEASURES = re.compile(r"aten::(?:pow|square|abs|sum|linalg_vector_norm|norm)")
_ADDS_UP = re.compile(r"aten::(?:sum|mean|linalg_vector_norm|norm)")
_SCALES = re.compile(r"aten::(?:div|mul)_?")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, calls = evidence.profile, evidence.calls
    subtracts, measures = named(profile, "aten::sub".__eq__), named(profile, _MEASURES.fullmatch)
    broadcasts, scales = named(profile, "aten::unsqueeze".__eq__), named(profile, _SCALES.fullmatch)
    # Rows of one operand beside those of the other: two new dimensions for each difference. Scaled by a third, it is
    # a norm of each row.
    added = evidence.callers.counted_near(subtracts, broadcasts, calls)
    added_up = evidence.callers.near(subtracts, named(profile, _ADDS_UP.fullmatch))
    pairs = added_up & ~beside(profile, subtracts, scales)
    pairs &= added >= 2 * np.maximum(calls, 1)
    yield from work_findings(evidence, below(profile, pairs | evidence.callers.near(measures, pairs)), _WORK)


RULE = Rule(_find, "distances of all pairs by differences", (GPU_TIME, OPERATORS), (MUCH_GPU,), _WORK.change)
