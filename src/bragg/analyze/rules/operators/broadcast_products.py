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

__all__ = ["RULE"]

_WORK = Work(
    "broadcast-product",
    "products of all pairs are written, and read again to be added up",
    "a @ b, or torch.einsum: a matrix product writes no pair, and tensor cores do it",
    0.9,
    Confidence.LIKELY,
    least_share=0.1,
    is_launched=True,
)
_SUMS = re.compile(r"aten::(?:sum|mean)")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, parent, callers = evidence.profile, evidence.profile.tree.parent, evidence.callers
    multiplies, sums = named(profile, "aten::mul".__eq__), named(profile, _SUMS.fullmatch)
    broadcasts = named(profile, "aten::unsqueeze".__eq__)
    # Rows of one operand beside those of the other: two new dimensions for each product. A mask has one.
    added = np.bincount(parent[broadcasts], evidence.calls[broadcasts], len(parent))
    pairs = callers.near(multiplies, sums) & (added[np.maximum(parent, 0)] >= 2 * np.maximum(evidence.calls, 1))
    yield from work_findings(evidence, below(profile, pairs | callers.near(sums, pairs)), _WORK)


RULE = Rule(_find, "sums of products of all pairs", (GPU_TIME, OPERATORS), (), _WORK.change)
