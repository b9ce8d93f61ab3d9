"""Layers that are applied to rows after these were gathered, some of them many times."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.analyze.causes.text.repeated_values import made_by
from bragg.analyze.causes.text.text_calls import fits, is_layer, operands
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.analyze.rules.operators.products.late_repeats import of_pairs
from bragg.code.python_nodes import walk
from bragg.model import Confidence, Finding

_WORK = Work(
    "late-product",
    "products with rows that were gathered just before",
    "if rows are gathered several times (edges of a graph): multiply first, then gather: layer(x)[index] instead of "
    "layer(x[index])",
    0.8,
    Confidence.HEURISTIC,
    least_share=0.2,
)
_GATHERS = re.compile(r"aten::(?:index_select|index|gather)")
_BY_MASK = re.compile(r"aten::nonzero")  # below a gather: of a mask, which takes no row twice
_PRODUCTS = re.compile(r"aten::(?:linear|matmul|mm|addmm)")
_LAYERS = re.compile(r"Linear")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, callers = evidence.profile, evidence.callers
    gathers = named(profile, _GATHERS.fullmatch) & callers.is_direct & evidence.has_work
    gathers[profile.tree.parent[named(profile, _BY_MASK.fullmatch)]] = False
    gathers &= ~fits(evidence, gathers, _gathers_results)
    products = callers.near(named(profile, _PRODUCTS.fullmatch), gathers, before=True) & (callers.line > 0)
    products &= ~callers.near(products, fits(evidence, products, of_pairs))
    products &= ~fits(evidence, products, _is_of_sums)
    yield from work_findings(evidence, below(profile, products), _WORK)


def _gathers_results(file: FileText, statement: ast.stmt) -> bool:
    """Whether a statement gathers rows of its product, and none for it: `(x @ table.T).gather(1, index)`."""
    parts = list(walk(statement))
    products = {each for each in parts if _is_product(file, each)}
    for_products = any(_gathered(part) for each in products for part in walk(each))
    return not for_products and any(products & set(walk(of)) for each in parts for of in _gathered(each))


def _is_product(file: FileText, part: ast.AST) -> bool:
    if isinstance(part, ast.BinOp):
        return isinstance(part.op, ast.MatMult)
    return isinstance(part, ast.Call) and (
        bool(_PRODUCTS.fullmatch(f"aten::{call_name(part)}")) or is_layer(file, part, _LAYERS)
    )


def _gathered(part: ast.AST) -> list[ast.expr]:
    """What an expression gathers rows of; empty: it gathers none."""
    if isinstance(part, ast.Subscript):
        return [] if isinstance(part.slice, (ast.Constant, ast.UnaryOp, ast.Slice)) else [part.value]
    return operands(part) if isinstance(part, ast.Call) and call_name(part) in ("gather", "index_select") else []


def _is_of_sums(file: FileText, statement: ast.stmt) -> bool:
    """Whether a layer gets what is computed of sums of rows gathered by two indices: no row of it is there before."""
    for each in walk(statement):
        value: ast.expr = each if isinstance(each, ast.Call) else ast.Constant(None)
        while isinstance(value, ast.Call) and value.args:
            value = made_by(file, value.args[0])
        if isinstance(value, ast.BinOp) and isinstance(value.left, ast.Subscript):
            return isinstance(value.right, ast.Subscript) and ast.dump(value.left.slice) != ast.dump(value.right.slice)
    return False


RULE = Rule(_find, "layers of rows that were gathered before", (GPU_TIME, OPERATORS), (), _WORK.change)
