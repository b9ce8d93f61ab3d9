"""Products of three matrices, one after the other, whose order decides how much is computed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.text.program_text import FileText, call_name, reads_of
from bragg.analyze.causes.text.text_calls import calls_at, factors_of
from bragg.analyze.causes.thresholds import WAITS
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding, FrameKind
from bragg.model.table import BoolArray, Int64Array

_WORK = Work(
    "product-order",
    "products of three matrices, one right after the other",
    "if the result in the middle is larger than the matrices, change the order: q @ (k.T @ v) instead of "
    "(q @ k.T) @ v, a @ (b @ x) instead of (a @ b) @ x, torch.linalg.multi_dot",
    0.7,
    Confidence.HEURISTIC,
    least_share=0.25,
    is_launched=True,
)
_PRODUCTS = re.compile(r"aten::(?:matmul|mm|bmm|einsum)")
# What networks compute between two products, which leaves them no other order, or what has rules of its own.
_BETWEEN = re.compile(
    r"aten::(?:one_hot|diag(?:onal)?|\w*softmax|relu|elu|gelu|silu|tanh|sigmoid|exp|log|sin|cos|\w*norm\w*|dropout|where|masked_fill|clamp\w*)_?"
)
_SAME = 0.1
_NAMED = (ast.Name, ast.Attribute)
_TRANSPOSES = {"T", "mT", "t", "transpose", "permute", "swapaxes"}
_NUMBERS = re.compile(r"self|math|torch|[dnst]|\w*(?:scale|dim|temp|size|len|sqrt|head)\w*")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, callers, calls = evidence.profile, evidence.callers, evidence.calls
    recurs = (calls > 0) & (calls >= WAITS.value * evidence.steps)
    called = (callers.line > 0) & (profile.tree.kind == FrameKind.OPERATOR) & recurs
    products = named(profile, _PRODUCTS.fullmatch) & callers.is_direct & evidence.has_work
    between, chained = named(profile, _BETWEEN.fullmatch), np.zeros(len(calls), np.bool_)
    for inside in callers.by_function(called):
        lines = profile.tree.frames.line[profile.tree.frame[callers.line[inside]]]
        for line in np.unique(lines[products[inside]]):
            near = inside[(lines == line) | (lines == line + 1)]
            multiplied = near[products[near]]
            # Of a function that several layers call.
            n_products = float(calls[multiplied].sum() / calls[inside].min())
            is_chained = n_products >= 2 - _SAME and not between[near].any()
            chained[multiplied] |= is_chained and _may_have_middle(evidence, multiplied)
    chained |= _scored(evidence, products & recurs)
    yield from work_findings(evidence, below(profile, chained), _WORK)


def _may_have_middle(evidence: Evidence, products: Int64Array) -> bool:
    """Whether one of some products may be of another one's result, which nothing else reads; by the text."""
    at = [evidence.text.at(line) for line in np.unique(evidence.callers.line[products]).tolist()]
    return any(
        each is None or bool(calls_at(each[1], "einsum")) or any(_has_middle(each[0], part) for part in walk(each[1]))
        for each in at
    )


def _scored(evidence: Evidence, products: BoolArray) -> BoolArray:
    """Work of `(q @ k.T) @ v` by the text, with sums of what is in the middle: [n_nodes]."""
    line, found = evidence.callers.line, np.zeros(len(products), np.bool_)
    function = evidence.callers.function
    for node in np.flatnonzero(products & (line > 0)).tolist():
        at = evidence.text.at(int(line[node]))
        scores = [made for each in walk(at[1]) for made in _scores(at[0], each)] if at else []
        beside = np.flatnonzero((function == function[node]) & evidence.has_work).tolist() if scores else []
        of_scores = {part for made in scores for part in made}
        found[[each for each in beside if _statement(evidence, int(line[each])) in of_scores]] = True
    return found


def _statement(evidence: Evidence, line: int) -> ast.stmt | None:
    at = evidence.text.at(line)
    return at[1] if at else None


def _scores(file: FileText, product: ast.AST) -> Iterator[list[ast.stmt]]:
    """The statements of `w = q @ k.T` and of all that reads w, if a product with it is of three matrices.

    Nothing may read w for anything else than its sum: then it has to be made.
    """
    factors = _factors(product)
    name = _without_scale(file, factors[0]) if factors else None
    if not isinstance(name, ast.Name):
        return
    function = file.function_of(name)
    made = file.assigned(name.id, function)
    values = [_factors(_without_scale(file, each)) for each in made]
    if len(made) != 1 or not values[0] or not _is_transposed(file, values[0][1]):
        return
    loads = reads_of(function, name.id)
    if all(each is name or getattr(file.parents[each], "attr", "") in ("sum", "shape") for each in loads):
        yield [statement for each in (made[0], *loads) if (statement := file.statement(each.lineno))]


def _has_middle(file: FileText, product: ast.AST) -> bool:
    """Whether a factor of a product is made of another product, which nothing else reads."""
    for name in (each for factor in _factors(product) for each in walk(factor)):
        if _factors(name) and not _is_gram(name):
            return True
        if isinstance(name, ast.Name):
            function = file.function_of(name)
            made = [part for value in file.assigned(name.id, function) for part in walk(value)]
            if any(_factors(each) and not _is_gram(each) for each in made) and len(reads_of(function, name.id)) == 1:
                return True
    return False


def _is_gram(product: ast.AST) -> bool:
    """Whether it is `x.t() @ x`, of which no order needs less."""
    factors = [{call_name(part) for part in walk(each) if isinstance(part, _NAMED)} for each in _factors(product)]
    return len({frozenset(each - _TRANSPOSES) for each in factors}) == 1


def _factors(product: ast.AST | None) -> list[ast.expr]:
    return factors_of(product, ("matmul", "bmm", "mm"))


def _without_scale(file: FileText, value: ast.expr) -> ast.expr:
    """What a number multiplies or divides, by its name."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div)):
        if _is_number(file, value.right):
            return _without_scale(file, value.left)
        if _is_number(file, value.left) and isinstance(value.op, ast.Mult):
            return _without_scale(file, value.right)
    return value


def _is_number(file: FileText, value: ast.expr) -> bool:
    names = list(parts_of(value, ast.Name))
    return all(_NUMBERS.fullmatch(each.id) or getattr(file.parents[each], "attr", "") == "shape" for each in names)


def _is_transposed(file: FileText, value: ast.expr) -> bool:
    func = value.func if isinstance(value, ast.Call) else value
    if isinstance(func, ast.Attribute):
        return func.attr in _TRANSPOSES
    made = file.assigned(value.id, file.function_of(value)) if isinstance(value, ast.Name) else []
    return len(made) == 1 and not isinstance(made[0], ast.Name) and _is_transposed(file, made[0])


RULE = Rule(_find, "products of three matrices whose order decides", (GPU_TIME, OPERATORS), (WAITS,), _WORK.change)
