"""Products with matrices and filters whose structure, by the text of the program, allows for less work."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.text.program_text import FileText, call_name, is_raised, names_set
from bragg.analyze.causes.text.text_calls import fits
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding
from bragg.model.table import BoolArray

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
        with_making: Whether making it goes away, too.
    """

    what: str
    change: str
    operators: re.Pattern[str]
    saved: float
    is_made: Callable[[FileText, ast.expr], object]
    with_making: bool = False


def _find(evidence: Evidence) -> Iterator[Finding]:
    for kind in _STRUCTURES:
        nodes = named(evidence.profile, kind.operators.fullmatch) & evidence.has_work & (evidence.callers.line > 0)
        made = fits(evidence, nodes, partial(_has, kind=kind))
        if kind.with_making:
            made |= _making(evidence, made, kind)
        work = replace(_WORK, what=kind.what, change=kind.change, saved=kind.saved)
        yield from work_findings(evidence, below(evidence.profile, made), work)


def _making(evidence: Evidence, products: BoolArray, kind: _Structure) -> BoolArray:
    """Operators of the statements that make the matrices of some products, in the functions of these."""
    callers, found = evidence.callers, np.zeros(len(products), np.bool_)
    number = evidence.profile.tree.frames.line[evidence.profile.tree.frame]
    for line in np.unique(callers.line[products]).tolist():
        at = evidence.text.at(line)
        makers = [made for factor in _factors(at[1]) for made in at[0].makers(factor)] if at else []
        parts = [part for made in makers if at and kind.is_made(at[0], made) for part in at[0].origins(made)]
        lines = {each.lineno for each in parts if isinstance(each, ast.expr)}
        own = (callers.function == callers.function_of_line[line]) & evidence.has_work
        found |= own & np.isin(number[callers.line], list(lines))
    return found


def _has(file: FileText, statement: ast.stmt, *, kind: _Structure) -> bool:
    return any(kind.is_made(file, each) for factor in _factors(statement) for each in file.makers(factor))


def _factors(statement: ast.stmt) -> Iterator[ast.expr]:
    """What a statement multiplies."""
    for each in walk(statement):
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


def _is_low_rank(file: FileText, value: ast.expr) -> bool:
    """Whether it is a weight with a product of two factors added: `w + scale * b @ a`."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return False
    return any(_is_product(file, side) for side in (value.left, value.right)) and any(
        isinstance(each, (ast.Attribute, ast.Name)) and call_name(each).startswith(("weight", "w", "W"))
        for each in (value.left, value.right)
    )


def _is_product(file: FileText, value: ast.expr) -> bool:
    """Whether a matrix is a product of others, which may be scaled."""
    scaled = (each for made in file.makers(value) for each in _scaled(made))
    return any(
        (isinstance(each, ast.BinOp) and isinstance(each.op, ast.MatMult))
        or call_name(each) in ("matmul", "mm", "bmm", "einsum")
        for part in scaled
        for each in file.makers(part)
    )


def _scaled(value: ast.expr) -> list[ast.expr]:
    is_scaled = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult)
    return [value.left, value.right] if isinstance(value, ast.BinOp) and is_scaled else [value]


def _is_scattered(file: FileText, value: ast.expr) -> bool:
    """Whether a matrix of zeros gets elements by index tensors: `a[rows, columns] = 1`."""
    return any(
        all(isinstance(each, (ast.Name, ast.Subscript)) for each in index) for index in _set_in_zeros(file, value)
    )


def _is_of_own_channels(file: FileText, value: ast.expr) -> bool:
    """Whether a filter is zero but from each channel to itself: `w = zeros(c, c, 3, 3); w[range(c), range(c)] = k`."""
    is_filter = isinstance(value, ast.Call) and len(value.args) >= 3
    return is_filter and any(ast.dump(index[0]) == ast.dump(index[1]) for index in _set_in_zeros(file, value))


def _set_in_zeros(file: FileText, value: ast.expr) -> Iterator[list[ast.expr]]:
    """Indices, two or more, of what is set in a tensor of zeros that an expression makes."""
    if not isinstance(value, ast.Call) or call_name(value) not in ("zeros", "zeros_like", "new_zeros"):
        return
    target = file.parents.get(value)
    names = names_set(target) if isinstance(target, ast.Assign) else set()
    for each in parts_of(file.function_of(value), ast.Subscript):
        if isinstance(each.ctx, ast.Store) and isinstance(each.slice, ast.Tuple) and call_name(each.value) in names:
            yield each.slice.elts


def _is_of_groups(file: FileText, value: ast.expr) -> bool:
    """Whether a matrix tells which numbers are equal: `index[:, None] == torch.arange(n)`."""
    if not isinstance(value, ast.Compare) or not isinstance(value.ops[0], ast.Eq):
        return False
    sides = [value.left, *value.comparators]
    ranges = [any(call_name(made) == "arange" for made in file.makers(each)) for each in sides]
    return any(ranges) and not all(ranges) and any(is_raised(each) for each in sides)


def _is_fourier(file: FileText, value: ast.expr) -> bool:
    """Whether a matrix has sines of products of two ranges."""
    parts = list(file.origins(value))
    called = [call_name(each) for each in parts if isinstance(each, (ast.Call, ast.Attribute))]
    has_waves = isinstance(value, ast.Call) and call_name(value) in ("exp", "cos", "sin", "complex", "polar")
    return has_waves and "pi" in called and "arange" in called and bool({"outer", "ger"} & set(called))


def _is_outer(file: FileText, value: ast.expr) -> bool:
    return any(
        (isinstance(each, ast.Call) and call_name(each) in ("outer", "ger"))
        or (isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mult) and is_raised(each.left, each.right))
        for each in file.origins(value)
    )


def _is_reflection(file: FileText, value: ast.expr) -> bool:
    """Whether it is a unit matrix with an outer product added: `torch.eye(n) - 2 * torch.outer(v, v)`."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, (ast.Add, ast.Sub)):
        return False
    units = (isinstance(each, ast.Call) and call_name(each) == "eye" for each in file.makers(value.left))
    return any(units) and _is_outer(file, value.right)


def _is_box(_: FileText, value: ast.expr) -> bool:
    """Whether it is a filter of equal values for each channel: `torch.ones(1, 1, k, k)`."""
    sizes = value.args if isinstance(value, ast.Call) and call_name(value) == "ones" else []
    return len(sizes) >= 3 and isinstance(sizes[1], ast.Constant) and sizes[1].value == 1


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
        "products of narrow factors are added to a weight, which is then multiplied with few rows",
        "multiply the rows with the factors: x @ w.T + (x @ a.T) @ b.T; or add them once, if they stay the same",
        _PRODUCTS,
        0.8,
        _is_low_rank,
        with_making=True,
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
        "products with a matrix of zeros and ones, which compares numbers of groups with all groups",
        "sums over groups: out.index_add_(0, group, x); rows of a table: table[index]",
        _PRODUCTS,
        0.9,
        _is_of_groups,
        with_making=True,
    ),
    _Structure(
        "products with a matrix of Fourier's waves",
        "torch.fft.rfft, which takes n log n steps instead of n squared",
        _PRODUCTS,
        0.8,
        _is_fourier,
    ),
    _Structure(
        "convolutions with a filter that takes each channel to itself alone: all others are multiplied with zeros",
        "F.conv2d(x, filters, groups=channels) with filters of (channels, 1, height, width)",
        _CONVOLUTIONS,
        0.6,
        _is_of_own_channels,
    ),
    _Structure(
        "convolutions with a filter that is an outer product",
        "two convolutions, one along each axis: k + k products for each element instead of k times k",
        _CONVOLUTIONS,
        0.7,
        _is_outer,
    ),
    _Structure(
        "convolutions with a filter of equal values",
        "nn.functional.avg_pool2d, along one axis after the other; differences of torch.cumsum for wide windows",
        _CONVOLUTIONS,
        0.7,
        _is_box,
    ),
    _Structure(
        "products with a unit matrix to which an outer product is added",
        "multiply with the vectors: x - 2 * (x @ v)[:, None] * v for x @ (torch.eye(n) - 2 * torch.outer(v, v))",
        _PRODUCTS,
        0.9,
        _is_reflection,
        with_making=True,
    ),
)
RULE = Rule(_find, _WORK.what, (GPU_TIME, OPERATORS, TEXT), (), _WORK.change)
