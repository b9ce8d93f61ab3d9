"""Many elementwise kernels, each of which reads and writes all of its tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import LONG_CHAIN, MANY_ELEMENTWISE
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, FrameKind
from bragg.model.table import BoolArray

__all__ = ["RULE"]

# A chain of n kernels that becomes one saves (n - 1) / n of the traffic; chains of two and three are the usual ones.
_WORK = Work(
    "unfused-elementwise",
    "elementwise kernels, each of which reads and writes whole tensors",
    "torch.compile fuses them",
    0.5,
    Confidence.HEURISTIC,
    least_share=0.15,
)
# Without steps a call path counts as one, though it may be taken often in each.
_CHAIN = 4
_SELDOM = 0.1  # of the calls of a function's other operators: what runs for a few of them
_ELEMENTWISE = re.compile(r"at::native.*elementwise_kernel|at6native\d*.*elementwise_kernel")
_COPIES = re.compile(r"copy_kernel|FillFunctor")


def _find(evidence: Evidence) -> Iterator[Finding]:
    nodes = named(evidence.profile, lambda name: _ELEMENTWISE.search(name) and not _COPIES.search(name))
    nodes &= ~below(evidence.profile, named(evidence.profile, lambda name: name.startswith("Optimizer.")))
    count = float(evidence.gpu_count[nodes].sum())
    many = MANY_ELEMENTWISE.value * evidence.n_steps if evidence.n_steps else _CHAIN * evidence.steps
    if count < many:
        nodes &= below(evidence.profile, _chains(evidence, nodes))
    yield from work_findings(evidence, nodes, _WORK)


def _chains(evidence: Evidence, kernels: BoolArray) -> BoolArray:
    """Operators with elementwise kernels, of functions that call many of them one after the other: [n_nodes]."""
    profile, callers, calls = evidence.profile, evidence.callers, evidence.calls
    launching = profile.tree.sum_up(np.where(kernels, evidence.gpu_count, 0.0)) > 0
    operators = callers.is_direct & launching & (profile.tree.kind == FrameKind.OPERATOR)
    found = np.zeros(len(operators), np.bool_)
    for inside in callers.by_function(operators):
        recurs = calls[inside][calls[inside] >= _SELDOM * calls[inside].max()]
        found[inside] = recurs.sum() >= LONG_CHAIN.value * recurs.min()
    return found


RULE = Rule(
    _find,
    "chains of elementwise kernels",
    (GPU_TIME,),
    (MANY_ELEMENTWISE, LONG_CHAIN),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
