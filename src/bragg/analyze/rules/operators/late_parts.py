"""Products over all positions of a sequence, of which the program takes one or some afterwards."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

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
_CHOSEN = replace(
    _WORK,
    what="products over all positions, of which a mask chooses some afterwards",
    change="choose before the product, if the mask leaves few: head(h[mask]) instead of head(h)[mask]",
    saved=0.7,
)
_PRODUCTS = re.compile(r"aten::(?:linear|matmul|mm|bmm|addmm|einsum)")
# Where keys and values of earlier positions are kept, there is one position.
_CACHES = re.compile(r"\b\w*(?:cache|past|kv)\w*\b", re.I)


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    products = named(profile, _PRODUCTS.fullmatch) & (evidence.callers.line > 0) & evidence.has_work
    for is_meant, work in ((_is_part, _WORK), (_is_chosen, _CHOSEN)):
        takers = {
            node: line
            for node in np.flatnonzero(products).tolist()
            if (line := _taken(evidence, node, is_meant)) is not None
        }
        late = np.zeros(len(products), np.bool_)
        late[list(takers)] = True
        for finding in work_findings(evidence, below(profile, late), work):
            others = [place_of(profile, line) for line in dict.fromkeys(takers.values())]
            yield moved(finding, Place(finding.file, finding.line, node=finding.node), others)


_Test = Callable[[FileText, ast.AST], bool]


def _taken(evidence: Evidence, node: int, is_meant: _Test) -> NodeId | None:
    """The line that takes a part of a product, which a function it calls has returned; None: none does.

    What takes one position in the same function is not meant: operators tell it, and a rule of its own.
    """
    for depth, (line, file, statement) in enumerate(statements_above(evidence, node)):
        function = file.function_of(statement)
        if any(_CACHES.search(each.arg) for each in ast.walk(function) if isinstance(each, ast.arg)):
            return None
        use = _use(file, statement, is_meant)
        if use == "part":
            return line if depth or is_meant is _is_chosen else None
        if use != "returned":
            return None
    return None


def _use(file: FileText, statement: ast.stmt, is_meant: _Test) -> str:
    """What becomes of a value that a statement computes: a `part` of it is taken, it is `returned`, or neither."""
    if isinstance(statement, ast.Return):
        if statement.value is not None and is_meant(file, statement.value):
            return "part"
        return "returned" if _is_call_or_name(statement.value) else ""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        if is_meant(file, statement.value):
            return "part"
        return _uses(file, statement.targets[0].id, statement, is_meant)
    return "part" if any(is_meant(file, each) for each in ast.walk(statement)) else ""


def _uses(file: FileText, name: str, statement: ast.stmt, is_meant: _Test) -> str:
    """How a function uses a variable after a statement that sets it: as a `part`, `returned`, or in other ways."""
    loads = [
        each
        for each in ast.walk(file.function_of(statement))
        if isinstance(each, ast.Name)
        and each.id == name
        and isinstance(each.ctx, ast.Load)
        and each.lineno > (statement.end_lineno or statement.lineno)
    ]
    if loads and all(is_meant(file, file.parents[each]) for each in loads):
        return "part"
    return "returned" if loads and all(isinstance(file.parents[each], ast.Return) for each in loads) else ""


def _is_chosen(file: FileText, value: ast.AST) -> bool:
    """Whether it is `x[mask]`, with a mask that is a comparison."""
    if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Name):
        return False
    return any(isinstance(each, ast.Compare) for each in file.makers(value.slice))


def _is_part(file: FileText, value: ast.AST) -> bool:
    """Whether it is `x[:, -1]`, or the like: one position, beside a slice."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return _is_part(file, value.func.value)
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
    _find, "products over all positions of which some are taken later", (GPU_TIME, OPERATORS, TEXT), (), _WORK.change
)
