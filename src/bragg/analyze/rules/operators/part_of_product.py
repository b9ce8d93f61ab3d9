"""Matrix products of which a program takes one row or column."""

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
    "part-of-product",
    "products of whose result the program takes one row",
    "take the row before the product: head(x[:, -1]) instead of head(x)[:, -1]",
    0.9,
    Confidence.HEURISTIC,
    least_share=0.1,
)
_PRODUCTS, _TAKES = re.compile(r"aten::(?:linear|matmul|mm|bmm|addmm)"), "aten::select"


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, callers, calls = evidence.profile, evidence.callers, evidence.calls
    takes = named(profile, _TAKES.__eq__) & callers.is_direct
    products = callers.near(named(profile, _PRODUCTS.fullmatch), takes)
    # Rows that a loop takes one by one are all used, and so are the parts that several calls take.
    for inside in callers.by_function(products | takes):
        taken, of_products = calls[inside[takes[inside]]], calls[inside[products[inside]]]
        if len(of_products) and not np.isclose(taken.sum(), of_products.sum(), rtol=_SAME):
            products[inside] = False
    yield from work_findings(evidence, below(profile, products & (callers.line > 0)), _WORK)


_SAME = 0.1

RULE = Rule(_find, "products of which one row is taken", (GPU_TIME, OPERATORS), (), _WORK.change)
