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
from bragg.code.python_nodes import name_of, parts_of, walk
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
_MAKES = re.compile("(new_)?(zeros|ones|empty|full)|clone|copy")
_OPERATORS = {ast.MatMult: "matmul", ast.Mult: "mul", ast.Add: "add", ast.Sub: "sub", ast.Div: "div", ast.Pow: "pow"}
_CHANCE = re.compile("rand|normal_|uniform_|bernoulli|multinomial|dropout|exponential_")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, tree = evidence.profile, evidence.profile.tree
    works, least = tree.sum_up(evidence.gpu_ns), _WORK.least_share * float(evidence.gpu_ns.sum())
    hot = (tree.kind == FrameKind.PYTHON) & (works >= least)
    hot &= tree.sum_up(named(profile, _CHANCE.search).astype(np.int64)) == 0
    again: list[int] = []
    for line in np.flatnonzero(hot).tolist():
        at = evidence.text.at(line)
        if not at or not (repeated := _made_before(*at)):
            continue
        others = _other_operators(at[1], repeated)
        own = np.flatnonzero((tree.parent == line) & ~named(profile, others.__contains__)).tolist()
        again += own if float(works[own].sum()) >= least else []
    yield from line_findings(evidence, again, _WORK)


def _made_before(file: FileText, statement: ast.stmt) -> list[ast.Call]:
    """The calls of a statement that are made before, in the same block or one around it."""
    if hasattr(statement, "body"):
        return []
    for earlier in _before(file, statement):
        made = {ast.dump(each) for each in _calls(earlier)}
        called = [each for each in _calls(statement) if ast.dump(each) in made]
        read = {name for each in called for name in names_read(each)}
        between = [each for each in _before(file, statement) if each.lineno >= earlier.lineno]
        if called and not any(_changes(each, read) for each in between):
            return called
    return []


def _other_operators(statement: ast.stmt, repeated: list[ast.Call]) -> set[str]:
    """Names of the operators that a statement applies to what its repeated calls return, or to something else."""
    inside = {part for each in repeated for part in walk(each)}
    used = {name_of(each) for each in parts_of(statement, ast.Call) if each not in inside}
    used |= {_OPERATORS.get(type(each.op), "") for each in parts_of(statement, ast.BinOp) if each not in inside}
    return {f"aten::{name}" for name in used - {name_of(each) for each in repeated}}


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
    """Calls with variables as arguments: not of new memory, which each needs for itself, nor of tensors alone."""
    return [
        each
        for each in parts_of(statement, ast.Call)
        if any(isinstance(value, (ast.Name, ast.Attribute)) for value in each.args) and not _MAKES.match(name_of(each))
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
