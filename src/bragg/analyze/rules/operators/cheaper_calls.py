"""Calls instead of which others need less work, by the text of the statements that make them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.program_text import FileText, call_name, is_raised
from bragg.analyze.causes.text_calls import argument, calls_at, fits
from bragg.analyze.causes.uses import use_of
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding
from bragg.model.table import BoolArray

__all__ = ["RULE", "parts_of_factors"]

_SUMS = ("sum", "mean")
_ORDERED = ("softmax", "log_softmax", "sigmoid", "log", "sqrt")
_SIZED = ("zeros", "ones", "empty", "full", "rand", "randn", "randint")


@dataclass(frozen=True)
class _Call:
    """Calls of one kind.

    Attributes:
        what: What is computed.
        change: What to call instead.
        operators: Of the statement, whose work is meant.
        is_meant: Whether a statement makes such a call.
        saved: Share of their time that goes away.
        beside: Operators close by, whose work is meant, too; empty: there are none.
    """

    what: str
    change: str
    operators: str
    is_meant: Callable[[FileText, ast.stmt], bool]
    saved: float
    beside: str = ""


def _find(evidence: Evidence) -> Iterator[Finding]:
    for kind in _CALLS:
        chosen = fits(evidence, _named(evidence, kind.operators), kind.is_meant)
        if kind.beside:
            chosen |= evidence.callers.near(_named(evidence, kind.beside), chosen)
        work = Work(
            "cheaper-call",
            kind.what,
            kind.change,
            kind.saved,
            Confidence.HEURISTIC,
            with_host=True,
            least_share=0.1,
            is_launched=True,
        )
        yield from work_findings(evidence, below(evidence.profile, chosen), work)


def parts_of_factors(evidence: Evidence) -> BoolArray:
    """Decompositions that compute more than is used: [n_nodes]."""
    found = [fits(evidence, _named(evidence, kind.operators), kind.is_meant) for kind in _PARTS]
    return below(evidence.profile, np.logical_or.reduce(found))


def _named(evidence: Evidence, operators: str) -> BoolArray:
    return named(evidence.profile, re.compile(rf"aten::(?:{operators})").fullmatch) & evidence.has_work


def _sums(statement: ast.stmt, *names: str) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Calls of `x.sum(...)` and the like, with what they reduce."""
    for each in calls_at(statement, *names):
        yield from ((each, value) for value in _operands(each))


def _operands(call: ast.Call) -> list[ast.expr]:
    """What `x.sum(1)` or `torch.sum(x, 1)` is of."""
    is_method = isinstance(call.func, ast.Attribute) and not _is_library(call.func.value)
    return [call.func.value] if is_method and isinstance(call.func, ast.Attribute) else call.args[:1]


def _is_library(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("torch", "F", "np", "functional")


def _is_bag(file: FileText, statement: ast.stmt) -> bool:
    """Whether rows of an embedding are looked up and added up: `self.table(ids).sum(1)`."""
    return any(
        _dimension(each) in (1, -2) and any(_is_lookup(file, made) for made in file.makers(value))
        for each, value in _sums(statement, *_SUMS)
    )


def _is_lookup(file: FileText, made: ast.expr) -> bool:
    if not isinstance(made, ast.Call):
        return False
    layers = [each for each in file.attributes.get(call_name(made), []) if isinstance(each, ast.Call)]
    return any(call_name(each) == "Embedding" for each in layers) or ast.unparse(made.func).endswith(".embedding")


def _dimension(reduction: ast.Call) -> int | None:
    found = argument(reduction, "dim", 0 if reduction.args[:1] != _operands(reduction) else 1)
    try:
        value = None if found is None else ast.literal_eval(found)
    except ValueError:
        return None
    return value if isinstance(value, int) else None


def _is_of_windows(file: FileText, statement: ast.stmt) -> bool:
    """Whether overlapping windows of a tensor are reduced: `x.unfold(-1, width, 1).mean(-1)`."""
    return any(
        isinstance(made, ast.Call)
        and call_name(made) == "unfold"
        and len(made.args) == 3
        and ast.dump(made.args[1]) != ast.dump(made.args[2])
        for _, value in _sums(statement, *_SUMS, "amax", "amin")
        for made in file.makers(value)
    )


def _is_of_outers(file: FileText, statement: ast.stmt) -> bool:
    """Whether outer products of a batch are added up: `torch.bmm(x[:, :, None], y[:, None]).sum(0)`."""
    return any(
        _dimension(each) == 0
        and isinstance(made, ast.Call)
        and call_name(made) in ("bmm", "matmul")
        and len(made.args) == 2
        and is_raised(*made.args)
        for each, value in _sums(statement, *_SUMS)
        for made in file.makers(value)
    )


def _is_across_rows(file: FileText, statement: ast.stmt) -> bool:
    """Whether elements of a matrix are gathered from all of its rows: `table[:, index]`."""
    return any(_is_matrix(file, each) for each in ast.walk(statement) if _takes_columns(each))


def _takes_columns(part: ast.AST) -> bool:
    if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Tuple) and isinstance(part.ctx, ast.Load):
        rows, *columns = part.slice.elts
        is_index = len(columns) == 1 and isinstance(columns[0], (ast.Name, ast.Attribute, ast.Call))
        return is_index and isinstance(rows, ast.Slice) and rows.lower is None and rows.upper is None
    if isinstance(part, ast.Call) and call_name(part) == "index_select":
        found = argument(part, "dim", 0 if len(part.args) == 2 else 1)
        return isinstance(found, ast.Constant) and found.value == 1
    return False


def _is_matrix(file: FileText, taken: ast.AST) -> bool:
    """Whether what is taken has two dimensions, as how it is turned or where it was made tells."""
    above = file.parents.get(taken)
    if isinstance(above, ast.Attribute) and above.attr in ("t", "T"):
        return True
    made = [each for owner in _owners(taken) for each in file.makers(owner)]
    return bool(made) and all(isinstance(each, ast.Call) and _n_sizes(each) == 2 for each in made)


def _owners(taken: ast.AST) -> list[ast.expr]:
    """The tensor that a part is taken of."""
    if isinstance(taken, ast.Subscript):
        return [taken.value]
    return _operands(taken) if isinstance(taken, ast.Call) else []


def _n_sizes(made: ast.Call) -> int:
    """Dimensions of a tensor that a call makes; 0: not known."""
    if call_name(made) not in _SIZED:
        return 0
    sizes = [each for each in made.args if isinstance(each, (ast.Tuple, ast.List))]
    if sizes:
        return len(sizes[0].elts)
    return 0 if call_name(made) in ("full", "randint") else len(made.args)


def _is_permutation(file: FileText, statement: ast.stmt) -> bool:
    """Whether rows are chosen by a product with rows of a unit matrix: `torch.eye(n)[order] @ x`."""
    factors = [side for each in _products(statement) for side in (each.left, each.right)]
    factors += [value for each in calls_at(statement, "matmul", "mm", "bmm", "einsum") for value in each.args]
    return any(
        call_name(made) == "eye" and isinstance(file.parents[made], ast.Subscript)
        for factor in factors
        for made in file.makers(factor)
        if isinstance(made, ast.Call)
    )


def _is_for_order(file: FileText, statement: ast.stmt) -> bool:
    """Whether a statement computes what keeps an order, and the place of the largest alone is taken of it."""
    if use_of(file, statement, _is_place) != "part":
        return False
    places = [
        each for each in ast.walk(file.function_of(statement)) if isinstance(each, ast.Call) and _is_place(file, each)
    ]
    found = [(each, made) for each in places for value in _operands(each) for made in file.makers(value)]
    return any(made in calls_at(statement, *_ORDERED) and _is_along(made, place) for place, made in found)


def _is_place(_: FileText, value: ast.AST) -> bool:
    return isinstance(value, (ast.Call, ast.Attribute)) and call_name(value) in ("argmax", "argmin")


def _is_along(made: ast.expr, place: ast.Call) -> bool:
    """Whether a softmax is along the dimension of which the largest is taken; others have no dimension."""
    if not isinstance(made, ast.Call) or "softmax" not in call_name(made):
        return True
    return _dimension(made) == _dimension(place) is not None


def _is_unread(*kept: str) -> Callable[[FileText, ast.stmt], bool]:
    """Whether of the parts that a decomposition returns only some are read: `_, s, _ = torch.linalg.svd(x)`."""

    def is_meant(file: FileText, statement: ast.stmt) -> bool:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Tuple):
            return False
        names = [each.id if isinstance(each, ast.Name) else "" for each in statement.targets[0].elts]
        return len(names) == len(kept) and all(
            (name in _read(file, statement)) == (part == "read") for name, part in zip(names, kept, strict=True)
        )

    return is_meant


def _read(file: FileText, statement: ast.stmt) -> set[str]:
    inside = (each for each in ast.walk(file.function_of(statement)) if isinstance(each, ast.Name))
    return {each.id for each in inside if isinstance(each.ctx, ast.Load)}


def _is_pseudoinverse_of_one(_: FileText, statement: ast.stmt) -> bool:
    """Whether a pseudoinverse is made for one product: `torch.linalg.pinv(a) @ b`."""
    return any(call_name(each.left) in ("pinv", "pinverse") for each in _products(statement))


def _products(statement: ast.stmt) -> list[ast.BinOp]:
    """Products that are written with `@`."""
    return [each for each in ast.walk(statement) if isinstance(each, ast.BinOp) and isinstance(each.op, ast.MatMult)]


_PARTS = (
    _Call(
        "singular vectors are computed, and the singular values alone are used",
        "torch.linalg.svdvals(x), or norms of other kinds",
        "linalg_svd|svd",
        _is_unread("", "read", ""),
        0.6,
    ),
    _Call(
        "eigenvectors are computed, and the eigenvalues alone are used",
        "torch.linalg.eigvalsh(x), eigvals(x)",
        "linalg_eigh|linalg_eig",
        _is_unread("read", ""),
        0.5,
    ),
    _Call(
        "an orthogonal factor is computed, and the triangular one alone is used",
        'torch.linalg.qr(x, mode="r"), or the Cholesky factor of x.mT @ x',
        "linalg_qr|qr",
        _is_unread("", "read"),
        0.5,
    ),
    _Call(
        "pseudoinverses are computed by singular values, for a product with one right side each",
        "torch.linalg.lstsq(a, b).solution: QR instead of singular values; or Cholesky of a.mT @ a where it is well "
        "conditioned",
        "linalg_pinv|pinverse",
        _is_pseudoinverse_of_one,
        0.7,
    ),
)
_CALLS = (
    *_PARTS,
    _Call(
        "rows of an embedding are written one by one, and then added up",
        'nn.EmbeddingBag(n, width, mode="sum" or "mean"), nn.functional.embedding_bag: no tensor with all rows',
        r"sum|mean",
        _is_bag,
        0.5,
        "embedding",
    ),
    _Call(
        "overlapping windows are reduced, each element as often as a window is wide",
        "torch.cumsum and a difference, or nn.functional.avg_pool1d, max_pool1d",
        "sum|mean|amax|amin",
        _is_of_windows,
        0.6,
    ),
    _Call(
        "outer products of all rows are written, and then added up",
        "one product: x.mT @ y for the sum over rows",
        "sum|mean",
        _is_of_outers,
        0.9,
        "bmm|matmul",
    ),
    _Call(
        "single elements are gathered from all rows of a matrix, 32 bytes for each",
        "store it the other way around, table.T.contiguous(), once: table[index] reads whole rows",
        "index|index_select|contiguous",
        _is_across_rows,
        0.7,
    ),
    _Call(
        "values are computed for the place of the largest alone, which does not depend on it",
        "take argmax of what goes in: softmax, sigmoid, log and square roots keep the order",
        "softmax|log_softmax|sigmoid|log|sqrt",
        _is_for_order,
        1.0,
    ),
    _Call(
        "rows are chosen by a product with a matrix of zeros and ones",
        "take them by their numbers: x[order], x.index_select(0, order)",
        "matmul|mm|bmm|einsum",
        _is_permutation,
        0.9,
    ),
)
RULE = Rule(
    _find,
    "calls instead of which others need less work, by the program's text",
    (GPU_TIME, OPERATORS, TEXT),
    (),
    "svdvals, eigvalsh, lstsq, EmbeddingBag, cumsum, avg_pool1d, rows instead of columns, or x[order]",
    host_time=HostTime.CAUSE,
)
