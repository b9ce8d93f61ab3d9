"""Matrix products of which a program takes one row, or the diagonal."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.text.program_text import FileText, call_name, names_read, names_set, reads_of
from bragg.analyze.causes.text.text_calls import calls_at, fits, operands
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.analyze.rules.operators.products.diagonal_products import makes_diagonal
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding, Profile
from bragg.model.table import BoolArray, Int64Array

_WORK = Work(
    "part-of-product",
    "products of whose result the program takes one row, or the diagonal",
    "take the row before the product: head(x[:, -1]) instead of head(x)[:, -1]; the diagonal of a @ b.T is "
    "(a * b).sum(1)",
    0.9,
    Confidence.HEURISTIC,
    least_share=0.1,
)
_PRODUCTS = re.compile(r"aten::(?:linear|matmul|mm|bmm|addmm|einsum)")
_TAKEN_BY = ("diag", "diagonal", "trace", "select", "shape", "size", "dim")
_TAKES = re.compile(r"aten::(?:select|diag|diagonal|trace)")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, callers, calls = evidence.profile, evidence.callers, evidence.calls
    takes = named(profile, _TAKES.fullmatch) & callers.is_direct & ~_above(profile, makes_diagonal(evidence))
    takes &= ~fits(evidence, takes, _takes_operands)
    products = callers.near(named(profile, _PRODUCTS.fullmatch), takes)
    # Rows that a loop takes one by one are all used, and so are the parts that several calls take. One of two products
    # is the factor of the other.
    for inside in callers.by_function(products | takes):
        products[inside] &= _are_taken_of(evidence, inside[products[inside]], inside[takes[inside]], inside)
        taken, of_products = float(calls[inside[takes[inside]]].sum()), float(calls[inside[products[inside]]].sum())
        if not taken <= of_products * (1 + _SAME) <= _MOST * taken * (1 + _SAME):
            products[inside] = False
    yield from work_findings(evidence, below(profile, products & (callers.line > 0)), _WORK)


def _takes_operands(file: FileText, statement: ast.stmt) -> bool:
    """Whether a statement takes parts of arguments and attributes alone, of which it computes something."""
    parts = [each for each in parts_of(statement, ast.Subscript) if getattr(each.value, "attr", "") != "shape"]
    return bool(parts) and not any(
        isinstance(each.value, (ast.Call, ast.BinOp))
        or (isinstance(each.value, ast.Name) and file.assigned(each.value.id, file.function_of(each)))
        for each in parts
    )


def _are_taken_of(evidence: Evidence, products: Int64Array, takes: Int64Array, inside: Int64Array) -> BoolArray:
    """Whether each node of a function is a product of which a part may be taken, by the text."""
    line = evidence.callers.line
    taken = [evidence.text.at(each) for each in np.unique(line[takes]).tolist()]
    found = set()
    for node in products.tolist():
        made = evidence.text.at(int(line[node]))
        if not made or any(at is None or _is_taken_of(made[0], made[1], at[1]) for at in taken):
            found.add(node)
    return np.isin(inside, list(found))


def _is_taken_of(file: FileText, product: ast.stmt, take: ast.stmt) -> bool:
    """Whether a statement may take a part of what another one, or itself, computes."""
    if product is take:
        parts = [each.value for each in parts_of(take, ast.Subscript)]
        parts += [value for call in calls_at(take, "diag", "diagonal", "trace") for value in operands(call)]
        return not parts or any(isinstance(each, (ast.Call, ast.BinOp)) for part in parts for each in walk(part))
    if isinstance(product, ast.Return) or (isinstance(product, ast.Expr) and not _is_of_variable(product.value)):
        return False
    function, targets = file.function_of(product), names_set(product)
    if any(not _only_takes(file, each) for name in targets for each in reads_of(take, name)):
        return False
    reads, waiting = set[str](), names_read(take)
    while waiting - reads:
        reads |= waiting
        waiting = {name for each in waiting for value in file.assigned(each, function) for name in names_read(value)}
    return not targets or bool(targets & reads)


def _only_takes(file: FileText, read: ast.Name) -> bool:
    """Whether a statement takes a part of a variable where it reads it: not all, as in `x.pow(2).sum() - x.trace()`."""
    part: ast.AST = read
    while not isinstance(part, ast.stmt):
        above = file.parents[part]
        if isinstance(above, ast.Subscript) and above.value is part:
            return True
        if isinstance(above, ast.Attribute) and above.attr in _TAKEN_BY:
            return True
        if isinstance(above, ast.Call) and part in above.args and call_name(above) in _TAKEN_BY:
            return True
        part = above
    return False


def _is_of_variable(value: ast.expr) -> bool:
    """Whether it calls a method of a variable, which may keep what it is given: `rows.append(x @ w)`."""
    return (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Name)
    )


def _above(profile: Profile, nodes: BoolArray) -> BoolArray:
    found: BoolArray = profile.tree.sum_up(nodes.astype(np.int64)) > 0
    return found


_SAME, _MOST = 0.1, 2

RULE = Rule(_find, "products of which one row or the diagonal is taken", (GPU_TIME, OPERATORS), (), _WORK.change)
