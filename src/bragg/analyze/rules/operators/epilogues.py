"""Elementwise operators right before or behind a Triton kernel, which could do their work."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import below, lines_above, named
from bragg.analyze.causes.text.program_text import FileText, names_read, names_set
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding, FrameKind
from bragg.model.ids import NodeId
from bragg.model.kernels.names import is_specialized
from bragg.model.table import BoolArray

_WORK = Work(
    "unfused-epilogue",
    "elementwise operators right before or behind a Triton kernel, which read and write what it has in registers",
    "compute them in the kernel: on what it loads, or on its result before tl.store",
    0.9,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.1,
)
_ELEMENTWISE = re.compile(
    r"aten::(?:r?sub|add|mul|div|neg|abs|pow|square|r?sqrt|reciprocal|exp|log|erf|sin|cos|tanh|sigmoid|relu|gelu|silu|"
    r"leaky_relu|hardtanh|softplus|elu|where|masked_fill|clamp(?:_min|_max)?|maximum|minimum|round|sign|floor|"
    r"addcmul)_?"
)
_LEVELS = 2  # the function that launches the kernel, and the one that calls it


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, tree, callers = evidence.profile, evidence.profile.tree, evidence.callers
    elementwise = named(profile, _ELEMENTWISE.fullmatch) & callers.is_direct & evidence.has_work
    chosen = np.zeros(len(tree), np.bool_)
    for line in _launches(evidence):
        at = evidence.text.at(line)
        if at is not None:
            own = elementwise & (callers.function == callers.function_of_line[line])
            chosen |= _beside(evidence, own, *at)
    yield from work_findings(evidence, below(profile, chosen), _WORK)


def _launches(evidence: Evidence) -> list[NodeId]:
    """Lines of the program that launch Triton kernels, and those that call them."""
    frames, tree = evidence.profile.tree.frames, evidence.profile.tree
    kernels = np.flatnonzero((tree.kind == FrameKind.KERNEL) & (evidence.gpu_ns > 0)).tolist()
    written = [node for node in kernels if is_specialized(frames.name[tree.frame[node]])]
    lines = [lines_above(evidence.profile, NodeId(node))[-_LEVELS:] for node in written]
    return list(dict.fromkeys(line for each in lines for line in each))


def _beside(evidence: Evidence, operators: BoolArray, file: FileText, launch: ast.stmt) -> BoolArray:
    """Operators of a function that use what a statement launches a kernel for, or make what it takes."""
    function = file.function_of(launch)
    statements = [each for each in walk(function) if isinstance(each, (ast.Assign, ast.AugAssign, ast.Return))]
    made = names_set(launch) | (_handed(launch) if isinstance(launch, ast.Expr) else set())
    behind: set[ast.stmt] = {launch} if not isinstance(launch, ast.Expr) else set()
    for each in sorted(statements, key=lambda statement: statement.lineno):
        if each.lineno > launch.lineno and each.value is not None and names_read(each.value) & made:
            behind.add(each)
            made |= names_set(each)
    before = {each for each in statements if each.lineno < launch.lineno and names_set(each) & names_read(launch)}
    found = np.zeros(len(operators), np.bool_)
    for node in np.flatnonzero(operators).tolist():
        at = evidence.text.at(int(evidence.callers.line[node]))
        found[node] = at is not None and at[1] in behind | before
    return found


def _handed(launch: ast.stmt) -> set[str]:
    """Variables that are arguments of a launch."""
    calls = [each for each in parts_of(launch, ast.Call) if isinstance(each.func, ast.Subscript)]
    return {value.id for call in calls for value in call.args if isinstance(value, ast.Name)}


RULE = Rule(
    _find,
    "elementwise operators beside Triton kernels",
    (GPU_TIME, OPERATORS, TEXT),
    (),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
