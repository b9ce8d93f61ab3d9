"""Products of three matrices, one after the other, whose order decides how much is computed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import WAITS
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding, FrameKind

__all__ = ["RULE"]

_WORK = Work(
    "product-order",
    "products of three matrices, one right after the other",
    "if the result in the middle is larger than the matrices, change the order: q @ (k.T @ v) instead of "
    "(q @ k.T) @ v, a @ (b @ x) instead of (a @ b) @ x, torch.linalg.multi_dot",
    0.7,
    Confidence.HEURISTIC,
    least_share=0.25,
)
_PRODUCTS = re.compile(r"aten::(?:matmul|mm|bmm|einsum)")
# What networks compute between two products, which leaves them no other order, or what has rules of its own.
_BETWEEN = re.compile(
    r"aten::(?:one_hot|diag(?:onal)?|\w*softmax|relu|elu|gelu|silu|tanh|sigmoid|exp|log|sin|cos|\w*norm\w*|dropout|where|masked_fill|clamp\w*)_?"
)
_SAME = 0.1


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, callers, calls = evidence.profile, evidence.callers, evidence.calls
    recurs = (calls > 0) & (calls >= WAITS.value * evidence.steps)
    called = (callers.line > 0) & (profile.tree.kind == FrameKind.OPERATOR) & recurs
    products = named(profile, _PRODUCTS.fullmatch) & callers.is_direct & evidence.has_work
    between, chained = named(profile, _BETWEEN.fullmatch), np.zeros(len(calls), np.bool_)
    for inside in callers.by_function(called):
        lines = profile.tree.frames.line[profile.tree.frame[callers.line[inside]]]
        for line in np.unique(lines[products[inside]]):
            near = inside[(lines == line) | (lines == line + 1)]
            multiplied = near[products[near]]
            # Of a function that several layers call.
            n_products = float(calls[multiplied].sum() / calls[inside].min())
            chained[multiplied] |= n_products >= 2 - _SAME and not between[near].any()
    yield from work_findings(evidence, below(profile, chained), _WORK)


RULE = Rule(_find, "products of three matrices whose order decides", (GPU_TIME, OPERATORS), (WAITS,), _WORK.change)
