"""Calls that a function makes twice with the same arguments, by the text of the program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.text.program_text import FileText, names_read, names_set
from bragg.analyze.causes.work_finding import Work, line_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import parts_of
from bragg.model import Confidence, Finding, FrameKind

_WORK = Work(
    "same-call",
    "a function makes the same call twice, with arguments that did not change between",
    "keep the result of the first call, and use it for the second",
    1.0,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.1,
    is_launched=True,
)
_ENDS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module, ast.For, ast.AsyncFor, ast.While)
_CHANCE = re.compile("rand|normal_|uniform_|bernoulli|multinomial|dropout|exponential_")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, tree = evidence.profile, evidence.profile.tree
    works = tree.sum_up(evidence.gpu_ns)
    hot = (tree.kind == FrameKind.PYTHON) & (works >= _WORK.least_share * float(evidence.gpu_ns.sum()))
    hot &= tree.sum_up(named(profile, _CHANCE.search).astype(np.int64)) == 0
    again = [node for node in np.flatnonzero(hot).tolist() if (at := evidence.text.at(node)) and _is_second(*at)]
    yield from line_findings(evidence, again, _WORK)


def _is_second(file: FileText, statement: ast.stmt) -> bool:
    """Whether all calls of a statement that matter are made before, in the same block or one around it."""
    if hasattr(statement, "body"):
        return False
    for earlier in _before(file, statement):
        shared = {ast.dump(each) for each in _calls(earlier)} & {ast.dump(each) for each in _calls(statement)}
        called = [each for each in _calls(statement) if ast.dump(each) in shared]
        read = {name for each in called for name in names_read(each)}
        between = [each for each in _before(file, statement) if each.lineno >= earlier.lineno]
        if called and not any(_changes(each, read) for each in between):
            return True
    return False


def _before(file: FileText, statement: ast.stmt) -> list[ast.stmt]:
    """Statements that have run when a statement runs, in its block and those around it, up to a loop or function."""
    found: list[ast.stmt] = []
    part: ast.AST = statement
    while part in file.parents and not isinstance(part, _ENDS):
        above = file.parents[part]
        for block in (getattr(above, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(block, list) and part in block:
                found += [each for each in block[: block.index(part)] if isinstance(each, ast.stmt)]
        part = above
    return found


def _calls(statement: ast.stmt) -> list[ast.Call]:
    """Calls with variables as arguments; those of tensors and modules of Python are cheap."""
    return [
        each
        for each in parts_of(statement, ast.Call)
        if any(isinstance(value, (ast.Name, ast.Attribute)) for value in each.args)
    ]


def _changes(statement: ast.stmt, names: set[str]) -> bool:
    """Whether a statement sets one of some variables, or a call may change it."""
    is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return bool(names_set(statement) & names) or is_call


RULE = Rule(
    _find,
    "calls that a function makes twice",
    (GPU_TIME, OPERATORS, TEXT),
    (),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
