"""Sums of products that are written for all pairs, where a matrix product would add them up as it goes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding

_WORK = Work(
    "broadcast-product",
    "products or comparisons of all pairs are written, and read again to be added up",
    "a @ b, or torch.einsum: a matrix product writes no pair, and tensor cores do it; instead of comparisons argsort, "
    "searchsorted, bincount or index_add_",
    0.9,
    Confidence.LIKELY,
    least_share=0.1,
    is_launched=True,
)
_COMBINES = re.compile(r"aten::(?:mul|gt|lt|ge|le|eq|ne|__and__|bitwise_and|logical_and)")
_SUMS = re.compile(r"aten::(?:sum|mean)")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, calls, callers = evidence.profile, evidence.calls, evidence.callers
    combines, sums = named(profile, _COMBINES.fullmatch), named(profile, _SUMS.fullmatch)
    broadcasts = named(profile, "aten::unsqueeze".__eq__)
    # Rows of one operand beside those of the other: two new dimensions for each product. A mask has one.
    added = callers.counted_near(combines, broadcasts, calls)
    pairs = callers.near(combines, sums) & (added >= 2 * np.maximum(calls, 1))
    yield from work_findings(evidence, below(profile, pairs | callers.near(sums, pairs)), _WORK)


RULE = Rule(_find, "sums of products of all pairs", (GPU_TIME, OPERATORS), (), _WORK.change)
