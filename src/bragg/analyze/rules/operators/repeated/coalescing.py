"""Sparse matrices whose entries are sorted, and added up where several are equal, again and again."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import WAITS
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding

_WORK = Work(
    "repeated-coalescing",
    "a sparse matrix (COO) is coalesced again: its entries are sorted, and those of one place added up",
    "if it stays the same: matrix = matrix.coalesce() or matrix.to_sparse_csr(), once before the steps",
    0.9,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.1,
    is_launched=True,
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, calls = evidence.profile, evidence.calls
    sorts = named(profile, "aten::_coalesce".__eq__) & (calls > 0) & (calls >= WAITS.value * evidence.steps)
    # Sparse gradients of embeddings have new entries in each step.
    gradients = named(
        profile, lambda name: name == "[backward]" or name.startswith(("torch::autograd::", "Optimizer."))
    )
    yield from work_findings(evidence, below(profile, sorts) & ~below(profile, gradients), _WORK)


RULE = Rule(
    _find,
    "sparse matrices that are coalesced again and again",
    (GPU_TIME, OPERATORS),
    (WAITS,),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
