"""Products over all positions of a sequence, of which a function that calls them takes the last one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import below, named, place_of
from bragg.analyze.causes.program_text import FileText
from bragg.analyze.causes.text_calls import statements_above
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding, Place
from bragg.model.ids import NodeId

__all__ = ["RULE"]

_WORK = Work(
    "late-part",
    "products over all positions, of which a function that calls them takes one",
    "take the position before the product: head(h[:, -1]) instead of head(h)[:, -1]",
    0.9,
    Confidence.HEURISTIC,
    least_share=0.1,
)
_PRODUCTS = re.compile(r"aten::(?:linear|matmul|mm|bmm|addmm|einsum)")
# Where keys and values of earlier positions are kept, there is one position.
_CACHES = re.compile(r"\b\w*(?:cache|past|kv)\w*\b", re.I)


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    products = named(profile, _PRODUCTS.fullmatch) & (evidence.callers.line > 0) & evidence.has_work
    takers = {node: line for node in np.flatnonzero(products).tolist() if (line := _taken(evidence, node)) is not None}
    late = np.zeros(len(products), np.bool_)
    late[list(takers)] = True
    for finding in work_findings(evidence, below(profile, late), _WORK):
        others = [place_of(profile, line) for line in dict.fromkeys(takers.values())]
        yield moved(finding, Place(finding.file, finding.line, node=finding.node), others)


def _taken(evidence: Evidence, node: int) -> NodeId | None:
    """The line that takes one position of a product which a function it calls has returned; None: none does."""
    for depth, (line, file, statement) in enumerate(statements_above(evidence, node)):
        function = file.function_of(statement)
        if any(_CACHES.search(each.arg) for each in ast.walk(function) if isinstance(each, ast.arg)):
            return None
        if isinstance(statement, ast.Return):
            if statement.value is not None and _is_part(statement.value):
                return line if depth else None
            if not _is_call_or_name(statement.value):
                return None
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            if _is_part(statement.value):
                return line if depth else None
            used = _uses(file, statement.targets[0].id, statement)
            if used == "part":
                return line if depth else None
            if used != "returned":
                return None
        else:
            return line if depth and any(_is_part(each) for each in ast.walk(statement)) else None
    return None


def _uses(file: FileText, name: str, statement: ast.stmt) -> str:
    """How a function uses a variable after a statement that sets it: as a `part`, `returned`, or in other ways."""
    loads = [
        each
        for each in ast.walk(file.function_of(statement))
        if isinstance(each, ast.Name)
        and each.id == name
        and isinstance(each.ctx, ast.Load)
        and each.lineno > (statement.end_lineno or statement.lineno)
    ]
    if loads and all(_is_part(file.parents[each]) for each in loads):
        return "part"
    return "returned" if loads and all(isinstance(file.parents[each], ast.Return) for each in loads) else ""


def _is_part(value: ast.AST) -> bool:
    """Whether it is `x[:, -1]`, or the like: one position, beside a slice."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return _is_part(value.func.value)
    if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Tuple):
        return False
    parts = value.slice.elts
    slices = [isinstance(each, ast.Slice) or (isinstance(each, ast.Constant) and each.value is ...) for each in parts]
    return any(slices) and any(_is_number(each) for each in parts)


def _is_number(index: ast.expr) -> bool:
    value = index.operand if isinstance(index, ast.UnaryOp) else index
    return isinstance(value, ast.Constant) and isinstance(value.value, int)


def _is_call_or_name(value: ast.expr | None) -> bool:
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ("float", "to"):
        value = value.func.value
    return isinstance(value, (ast.Call, ast.Name))


RULE = Rule(
    _find, "products over all positions of which one is taken later", (GPU_TIME, OPERATORS, TEXT), (), _WORK.change
)
