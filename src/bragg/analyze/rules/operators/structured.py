"""Products with matrices and filters whose structure, by the text of the program, allows for less work."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.program_text import FileText, call_name
from bragg.analyze.causes.text_calls import fits
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding

__all__ = ["RULE"]

_WORK = Work(
    "structured-product",
    "products with matrices and filters whose structure allows for less work",
    "use the structure: two small products instead of a Kronecker product, torch.cumsum, torch.fft, index_add_, one "
    "filter along each axis",
    0.8,
    Confidence.HEURISTIC,
    least_share=0.1,
    is_launched=True,
)
_PRODUCTS = re.compile(r"aten::(?:linear|matmul|mm|bmm|addmm|mv|einsum|baddbmm)")
_CONVOLUTIONS = re.compile(r"aten::conv[123]d")


@dataclass(frozen=True)
class _Structure:
    """A kind of matrix or filter.

    Attributes:
        what: What is computed.
        change: What to do instead.
        operators: That multiply with it.
        saved: Share of their time that goes away.
        is_made: Whether an expression makes one.
    """

    what: str
    change: str
    operators: re.Pattern[str]
    saved: float
    is_made: Callable[[FileText, ast.expr], object]


def _find(evidence: Evidence) -> Iterator[Finding]:
    for kind in _STRUCTURES:
        nodes = named(evidence.profile, kind.operators.fullmatch) & evidence.has_work & (evidence.callers.line > 0)
        made = fits(evidence, nodes, partial(_has, kind=kind))
        work = replace(_WORK, what=kind.what, change=kind.change, saved=kind.saved)
        yield from work_findings(evidence, below(evidence.profile, made), work)


def _has(file: FileText, statement: ast.stmt, *, kind: _Structure) -> bool:
    return any(kind.is_made(file, each) for factor in _factors(statement) for each in file.makers(factor))


def _factors(statement: ast.stmt) -> Iterator[ast.expr]:
    """What a statement multiplies."""
    for each in ast.walk(statement):
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.MatMult):
            yield from (each.left, each.right)
        elif isinstance(each, ast.Call) and re.fullmatch(r"\w*mm|mv|matmul|einsum|linear|conv[123]d", call_name(each)):
            yield from (value for value in each.args if not isinstance(value, ast.Constant))
            yield from (each.func.value,) if isinstance(each.func, ast.Attribute) else ()


def _is_call(*names: str) -> Callable[[FileText, ast.expr], bool]:
    return lambda _, value: isinstance(value, ast.Call) and call_name(value) in names


def _is_triangle_of_ones(_: FileText, value: ast.expr) -> bool:
    inner = value.args[0] if isinstance(value, ast.Call) and value.args else None
    return call_name(value) in ("tril", "triu") and isinstance(inner, ast.Call) and call_name(inner) in ("ones", "full")


def _is_scattered(file: FileText, value: ast.expr) -> bool:
    """Whether a matrix of zeros gets elements by index tensors: `a[rows, columns] = 1`."""
    if not isinstance(value, ast.Call) or call_name(value) not in ("zeros", "zeros_like", "new_zeros"):
        return False
    target = file.parents.get(value)
    names = _stored(target) if isinstance(target, ast.Assign) else set()
    return any(
        isinstance(each, ast.Subscript)
        and isinstance(each.ctx, ast.Store)
        and call_name(each.value) in names
        and isinstance(each.slice, ast.Tuple)
        and all(isinstance(index, (ast.Name, ast.Subscript)) for index in each.slice.elts)
        for each in ast.walk(file.function_of(value))
    )


def _stored(part: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(part) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def _is_fourier(file: FileText, value: ast.expr) -> bool:
    """Whether a matrix has sines of products of two ranges."""
    parts = list(file.origins(value))
    called = [call_name(each) for each in parts if isinstance(each, (ast.Call, ast.Attribute))]
    has_waves = isinstance(value, ast.Call) and call_name(value) in ("exp", "cos", "sin", "complex", "polar")
    return has_waves and "pi" in called and "arange" in called and bool({"outer", "ger"} & set(called))


def _is_outer(file: FileText, value: ast.expr) -> bool:
    return any(
        (isinstance(each, ast.Call) and call_name(each) in ("outer", "ger"))
        or (isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mult) and _is_raised(each.left, each.right))
        for each in file.origins(value)
    )


def _is_raised(*values: ast.expr) -> bool:
    """Whether all are as `g[:, None]`, `g[None]` or `g.unsqueeze(0)`."""
    return all(
        call_name(value) == "unsqueeze"
        if isinstance(value, ast.Call)
        else isinstance(value, ast.Subscript) and any(_is_none(each) for each in ast.walk(value.slice))
        for value in values
    )


def _is_none(part: ast.AST) -> bool:
    return isinstance(part, ast.Constant) and part.value is None


_STRUCTURES = (
    _Structure(
        "products with a Kronecker product, which is written out",
        "(a kron b) x is a @ X @ b.T with x as a matrix X: two small products",
        _PRODUCTS,
        0.9,
        _is_call("kron"),
    ),
    _Structure(
        "products with a block diagonal matrix, most of which is zeros",
        "multiply the blocks as a batch: torch.bmm(blocks, x.view(n_blocks, size, -1))",
        _PRODUCTS,
        0.8,
        _is_call("block_diag"),
    ),
    _Structure(
        "products with a triangle of ones, which add up rows",
        "torch.cumsum",
        _PRODUCTS,
        0.9,
        _is_triangle_of_ones,
    ),
    _Structure(
        "products with a matrix of zeros in which few elements are set (edges of a graph)",
        "index_add_ of the rows that the elements choose, or a sparse matrix (torch.sparse_csr_tensor)",
        _PRODUCTS,
        0.8,
        _is_scattered,
    ),
    _Structure(
        "products with a matrix of Fourier's waves",
        "torch.fft.rfft, which takes n log n steps instead of n squared",
        _PRODUCTS,
        0.8,
        _is_fourier,
    ),
    _Structure(
        "convolutions with a filter that is an outer product",
        "two convolutions, one along each axis: k + k products for each element instead of k times k",
        _CONVOLUTIONS,
        0.7,
        _is_outer,
    ),
)
RULE = Rule(_find, _WORK.what, (GPU_TIME, OPERATORS, TEXT), (), _WORK.change)
