"""Many elementwise kernels, each of which reads and writes all of its tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_steps import GPU_TIME_OR_STEPS, HostCost, HostSteps, host_costs, host_steps
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import LONG_CHAIN, MANY_ELEMENTWISE, OF_STEP
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.grouping.compiled_regions import COMPILED_REGION
from bragg.model import Confidence, Finding, FrameKind
from bragg.model.table import BoolArray

# A chain of n kernels that becomes one saves (n - 1) / n of the traffic; chains of two and three are the usual ones.
_WORK = Work(
    "unfused-elementwise",
    "elementwise kernels, each of which reads and writes whole tensors",
    "torch.compile fuses them",
    0.5,
    Confidence.HEURISTIC,
    least_share=0.15,
)
_COMPILES = (
    "they run outside of what torch.compile has compiled, which fuses them; why: TORCH_LOGS=recompiles,graph_breaks"
)
# Without steps a call path counts as one, though it may be taken often in each.
_CHAIN = 4
_SELDOM = 0.1  # of the calls of a function's other operators: what runs for a few of them
_ELEMENTWISE = re.compile(r"at::native.*elementwise_kernel|at6native\d*.*elementwise_kernel")
_OPERATORS = re.compile(
    r"aten::(?:r?sub|add|mul|div|neg|abs|pow|square|r?sqrt|reciprocal|exp|log|erf|sin|cos|tanh|sigmoid|relu|gelu|silu|"
    r"leaky_relu|threshold_backward|where|clamp(?:_min|_max)?|maximum|minimum)_?"
)
_COPIES = re.compile(r"copy_kernel|FillFunctor")


def _find(evidence: Evidence) -> Iterator[Finding]:
    if (steps := host_steps(evidence)) is not None:
        yield from _without_gpu(evidence, steps)
        return
    nodes = named(evidence.profile, lambda name: _ELEMENTWISE.search(name) and not _COPIES.search(name))
    nodes &= ~below(evidence.profile, named(evidence.profile, lambda name: name.startswith("Optimizer.")))
    count = float(evidence.gpu_count[nodes].sum())
    many = MANY_ELEMENTWISE.value * evidence.n_steps if evidence.n_steps else _CHAIN * evidence.steps
    if count < many:
        nodes &= below(evidence.profile, _chains(evidence, nodes))
    yield from work_findings(evidence, nodes, replace(_WORK, change=_change(evidence)))


def _without_gpu(evidence: Evidence, steps: HostSteps) -> Iterator[Finding]:
    profile, tree = evidence.profile, evidence.profile.tree
    nodes = named(profile, _OPERATORS.fullmatch) & (tree.kind == FrameKind.OPERATOR)
    nodes &= ~below(profile, named(profile, lambda name: name.startswith("Optimizer."))) & ~evidence.host.input
    n_calls = float(evidence.calls[nodes].sum()) / steps.made
    if n_calls < MANY_ELEMENTWISE.value:
        return
    what = f"{n_calls:,.0f} elementwise operators a step, each of which reads and writes whole tensors"
    cost = HostCost(_WORK.rule, what, _change(evidence), _WORK.saved)
    yield from host_costs(evidence, below(profile, nodes), cost)


def _change(evidence: Evidence) -> str:
    """What to do, where the program may call `torch.compile` already."""
    compiles = any(name.startswith(COMPILED_REGION) for name in evidence.profile.tree.frames.name)
    return _COMPILES if compiles else _WORK.change


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
    (GPU_TIME_OR_STEPS,),
    (MANY_ELEMENTWISE, LONG_CHAIN, OF_STEP),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
