"""Attention that is given a mask of bools, which rules out its fastest kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, children, named
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding

__all__ = ["RULE"]

_WORK = Work(
    "masked-attention",
    "attention is given a mask of bools: it is written out for each call, and tiles that it hides are computed",
    "is_causal=True instead of a causal mask; pad a batch to its longest sequence, not to the most that the model "
    "takes, or use nested tensors; flex_attention for other masks",
    0.5,
    Confidence.HEURISTIC,
    least_share=0.1,
    is_launched=True,
)
_ATTENTION = "aten::scaled_dot_product_attention"
_CUTS = re.compile(r"aten::(?:triu|tril)_?")  # masks that are made in the same function have a rule of their own


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, function = evidence.profile, evidence.callers.function
    masked = np.zeros(len(function), np.bool_)
    masked[profile.tree.parent[children(profile, _ATTENTION, "aten::where") & evidence.has_work]] = True
    masked &= ~np.isin(function, function[named(profile, _CUTS.fullmatch) & (function >= 0)])
    yield from work_findings(evidence, below(profile, masked), _WORK)


RULE = Rule(_find, "attention with masks of bools", (GPU_TIME, OPERATORS), (), _WORK.change)
