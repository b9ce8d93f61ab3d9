"""Matrix products with diagonal matrices, which scale rows or columns."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding
from bragg.model.table import BoolArray

_WORK = Work(
    "diagonal-product",
    "products with a diagonal matrix, which only scale rows or columns",
    "d[:, None] * a * d[None, :] instead of torch.diag(d) @ a @ torch.diag(d)",
    0.95,
    Confidence.LIKELY,
)
_PRODUCTS = re.compile(r"aten::(?:matmul|mm|bmm|einsum)")


def makes_diagonal(evidence: Evidence) -> BoolArray:
    """Operators that write a matrix with a vector on its diagonal: [n_nodes]."""
    return named(evidence.profile, "aten::diag_embed".__eq__) & evidence.has_work


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, callers = evidence.profile, evidence.callers
    makes = makes_diagonal(evidence)
    makes[profile.tree.parent[makes & (profile.tree.parent > 0)]] |= callers.line[makes] == 0  # torch.diag, above it
    products = callers.near(named(profile, _PRODUCTS.fullmatch) & callers.is_direct, makes, before=True)
    yield from work_findings(evidence, below(profile, products), _WORK)


RULE = Rule(_find, "matrix products with diagonal matrices", (GPU_TIME, OPERATORS), (MUCH_GPU,), _WORK.change)
