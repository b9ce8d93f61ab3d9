"""Loops over the rows of a tensor that launch the same work for each row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding
from bragg.analyze.causes.host_steps import WAITS_OR_STEPS, HostCost, host_costs, host_steps
from bragg.analyze.causes.needs import OPERATORS
from bragg.analyze.causes.paths import below, children, named
from bragg.analyze.causes.thresholds import MANY_ROWS, OF_HOST, OF_STEP, PLAN_SHARE, RECURRING, WAITS
from bragg.analyze.engine import HostTime, Rule
from bragg.model import CallTree, Confidence, Finding, FrameKind, Quantity
from bragg.model.table import BoolArray

__all__ = ["RULE", "loops_over_rows"]

# Slices of a program whose steps are not known may be batches.
_TAKES_ROW, _TAKES = re.compile("aten::select"), re.compile(r"aten::(?:select|slice|narrow)")
_CHANGE = (
    "compute all rows at once, or with torch.vmap; if each row needs the one before: a fused operator (nn.LSTM), "
    "or torch.compile around the loop"
)
# One operator for all rows costs little more than that for one, as far as calls are what costs.
_SAVED = 0.9
_READS = {"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero"}


class _Loop(NamedTuple):
    """A function that takes tensors apart.

    Attributes:
        rows: How many in all.
        tensors: How many tensors.
        nodes: Operators that run for each row, with what is below them: [n_nodes].
        code: The code between the function and these, and what takes rows: [n_nodes].
        lines: Lines of the function: [n_nodes].
    """

    rows: float
    tensors: float
    nodes: BoolArray
    code: BoolArray
    lines: BoolArray


def _find(evidence: Evidence) -> Iterator[Finding]:
    if evidence.idle_ns is None:
        yield from _without_gpu(evidence)
        return
    for loop in _loops(evidence):
        nodes = loop.nodes & evidence.host.launching
        waits_ns = float(evidence.idle_ns[nodes].sum())
        n_kernels = float(evidence.gpu_count[loop.nodes].sum()) / loop.rows
        host_ns = float(evidence.recurring_host_ns[nodes].sum())
        is_long = waits_ns >= PLAN_SHARE.value * evidence.wall_ns or host_ns >= OF_HOST.value * evidence.wall_ns
        if not is_long or n_kernels < 1:
            continue
        each, plural = loop.rows / loop.tensors, "" if round(n_kernels, 2) == 1 else "s"
        cause = Cause(
            "row-loop",
            f"a loop takes {each:,.0f} rows of a tensor one by one and launches {n_kernels:,.3g} kernel{plural} for "
            "each",
            _CHANGE,
            evidence.gain(waits_ns * (1 - 1 / each)),
            Confidence.HEURISTIC,
            (
                Quantity("rows", each),
                Quantity("kernels a row", n_kernels),
                Quantity(f"waits for the host {evidence.step_word}", evidence.per_step(waits_ns), "ns"),
            ),
        )
        yield host_finding(evidence, nodes, evidence.idle_ns, cause)


def _without_gpu(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    for loop in _loops(evidence):
        reads = not (loop.nodes & ~named(profile, _READS.__contains__)).any()
        does, what = ("reads", "elements") if reads else ("takes", "rows")
        cost = HostCost(
            "row-loop",
            f"a loop {does} {loop.rows / loop.tensors:,.0f} {what} of a tensor one by one",
            "tensor.tolist(), once; or compute with the whole tensor" if reads else _CHANGE,
            _SAVED,
        )
        nodes = loop.nodes | loop.code
        below_lines = np.where(nodes, np.nan_to_num(profile.own("host_time").astype(np.float64)), 0.0)
        yield from host_costs(evidence, nodes, cost, np.where(loop.lines, profile.tree.sum_up(below_lines), 0.0))


def loops_over_rows(evidence: Evidence) -> BoolArray:
    """What runs for each row of a tensor: [n_nodes]."""
    found = np.zeros(len(evidence.profile.tree), np.bool_)
    for loop in _loops(evidence):
        found |= loop.nodes
    return found


def _loops(evidence: Evidence) -> Iterator[_Loop]:
    yield from _iterations(evidence)
    yield from _indexing(evidence)


def _indexing(evidence: Evidence) -> Iterator[_Loop]:
    """Functions that take rows by their numbers, many for each call: other operators of theirs run once a call."""
    profile, callers, calls = evidence.profile, evidence.callers, evidence.calls
    n_steps = _n_steps(evidence)
    called = (callers.line > 0) & (profile.tree.kind == FrameKind.OPERATOR) & evidence.host.launching
    takes = called & callers.is_direct & named(profile, (_TAKES if n_steps else _TAKES_ROW).fullmatch)
    works = _works(evidence) & ~takes
    least, every = WAITS.value * n_steps or RECURRING.value, np.arange(len(calls))
    for inside in callers.by_function(called):
        taken, recurs = calls[inside[takes[inside]]], calls[inside][calls[inside] >= least]
        once = float(recurs.min(initial=np.inf))
        looped = inside[works[inside] & (calls[inside] >= MANY_ROWS.value * once)]
        # Some of what runs for a row may run for a few rows alone.
        rows = float(np.median(calls[looped])) if len(looped) else np.inf
        if taken.max(initial=0) < rows:
            continue
        nodes, nothing = below(profile, np.isin(every, looped)), np.zeros(len(calls), np.bool_)
        yield _Loop(rows, once, nodes, nothing, np.isin(every, callers.line[looped]))


def _iterations(evidence: Evidence) -> Iterator[_Loop]:
    """Each function that iterates over tensors of many rows, as far as PyTorch announces it by `unbind`."""
    profile, tree = evidence.profile, evidence.profile.tree
    taken = children(profile, "Tensor.__iter__", "aten::unbind")
    selects = children(profile, "aten::unbind", "aten::select")
    lines = tree.parent[tree.parent[taken]]
    for parent, name, file in sorted({_function(evidence, line) for line in lines[lines > 0].tolist()}):
        siblings = np.flatnonzero((tree.parent == parent) & (tree.kind == FrameKind.PYTHON)).tolist()
        body = np.zeros(len(tree), np.bool_)
        body[[node for node in siblings if _function(evidence, node) == (parent, name, file)]] = True
        inside = below(profile, body)
        rows, tensors = (float(evidence.calls[inside & each].sum()) for each in (selects, taken))
        if not tensors or rows < MANY_ROWS.value * tensors:
            continue
        takes = below(profile, taken)
        often = inside & (tree.kind == FrameKind.OPERATOR) & (evidence.calls >= rows) & _works(evidence) & ~takes
        above = inside & ~body & (tree.sum_up(often.astype(np.int64)) > 0)
        code = above | (inside & takes) | _parents(tree, taken & inside)
        yield _Loop(rows, tensors, below(profile, often), code, body)


def _parents(tree: CallTree, nodes: BoolArray) -> BoolArray:
    found = np.zeros(len(nodes), np.bool_)
    found[tree.parent[nodes]] = True
    return found


def _works(evidence: Evidence) -> BoolArray:
    """Nodes whose operators compute something: on a GPU where there is one."""
    return evidence.has_work if evidence.idle_ns is not None else np.ones(len(evidence.profile.tree), np.bool_)


def _n_steps(evidence: Evidence) -> float:
    steps = host_steps(evidence)
    return steps.made if steps else evidence.n_steps


def _function(evidence: Evidence, line: int) -> tuple[int, str, str]:
    """The frames of one function differ by line: what is above them, its name and its file."""
    tree = evidence.profile.tree
    frame = int(tree.frame[line])
    return int(tree.parent[line]), tree.frames.name[frame], tree.frames.file[frame]


RULE = Rule(
    _find,
    "loops over the rows of a tensor, with launches for each row",
    (WAITS_OR_STEPS, OPERATORS),
    (MANY_ROWS, OF_HOST, OF_STEP, PLAN_SHARE, RECURRING, WAITS),
    _CHANGE,
    host_time=HostTime.CAUSE,
)
