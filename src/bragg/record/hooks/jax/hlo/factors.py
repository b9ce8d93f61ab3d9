"""Products and convolutions of an HLO module with a factor whose form makes them cheaper.

diag(d) @ x    rows of x, each times a number        kron(a, b) @ x, outer(a, b) @ x    two products that are smaller
(eye(n, k=1) - eye(n)) @ x             differences of neighbouring rows
conv(x, outer(g, g)), reduce_window    two of one dimension each
((q @ k.T) / sums[:, None]) @ v        q @ (k.T @ v) / sums[:, None]: an order with fewer operations
solve(a, b)    if a is banded, triangular, a product of a matrix with itself, or diag(d) + u @ u.T of few columns
"""

from __future__ import annotations

import math
import re

from bragg.grouping.hlo_names import (
    BANDED,
    BANDED_FACTOR,
    COMPLEX_PRODUCT,
    COSTLY_ORDER,
    DIAGONAL,
    INTEGERS,
    LOW_RANK,
    OUTER,
    REPEATED_FACTOR,
    SYMMETRIC,
    TRIANGULAR,
    WIDE_FILTER,
)
from bragg.grouping.hlo_program import HloState
from bragg.record.hooks.jax.hlo.module import DIMENSIONS
from bragg.record.hooks.jax.hlo.products import costly_products
from bragg.record.hooks.jax.hlo.zeros import is_identity, is_triangle, nonzero_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.hooks.jax.hlo.graph import HloGraph, Value
    from bragg.record.hooks.jax.hlo.places import Places


_CONVOLUTION = re.compile(r"\bwindow=\{size=(\d+)(?:x(\d+))?[ }]")
_MOVED_BY_ONE = re.compile(r"\bwindow=\{size=([\dx]+)(?: pad=[^ }]*)?\}")
_INNER = [re.compile(rf'{side}_contracting_dim(?:s|ensions)"?[=:][{{\["]+(\d+)') for side in ("lhs", "rhs")]
_GROUPS = re.compile(r"\bfeature_group_count=(\d+)")
_FACTORED, _LU = re.compile(r'op_name="(?:[^"]*/)?(lu|cholesky)"'), "lu"
_WIDE_INTEGERS = ("s32[", "u32[", "s64[", "u64[")
_LEAST_ELEMENTS = 1 << 12
_BAND = 16  # elements of a row that are not zero
_LONG_ROWS = 512  # a product of shorter ones takes about as long as reading and writing, by tensor cores
_FEW_COLUMNS = 4  # times as many rows
_LEAST_RANKED = 256  # rows
_REPEATED = 4
_WIDE, _LONG = 9, 128  # elements of both sides of a filter, or of one


_JUDGED = frozenset({"dot", "convolution", "custom-call", "reduce-window"})


def factor_states(graph: HloGraph, places: Places) -> dict[str, HloState]:
    """States by name of operation, of one computation."""
    found: dict[str, HloState] = {}
    for value in graph.values:
        state = _state(value) if value.made.code in _JUDGED else ""
        if state:
            place = places.nearest(_lines(graph, value))
            repeats = [each.plain for each in value.operands if state == REPEATED_FACTOR and _is_repeated(value, each)]
            found |= {each.executed.name: HloState(state, place) for each in (value, *repeats)}
        for each in costly_products(graph, value) if value.made.is_product else ():
            found[each.executed.name] = HloState(COSTLY_ORDER, places.nearest(_lines(graph, each)))
    return found


def _lines(graph: HloGraph, value: Value) -> list[str]:
    """Text of an operation, then of what is around it: XLA's own versions of some have no place."""
    return [each.made.line for each in (value, *graph.users(value), *value.operands)]


def _state(value: Value) -> str:
    if value.made.code == "reduce-window":
        return WIDE_FILTER if _is_wide(value) else ""
    if window := _CONVOLUTION.search(value.made.line):
        sides = int(window[1]), int(window[2] or 1)
        is_wide = min(sides) >= _WIDE or max(sides) >= _LONG
        return WIDE_FILTER if is_wide and _is_of_one_channel(value, sides[0] * sides[1]) else ""
    if told := _FACTORED.search(value.made.line):
        return _form(value, told[1]) if value.operands else ""
    if not value.made.is_product:
        return ""
    factors = [each.known for each in value.operands[:2] if each.size >= _LEAST_ELEMENTS]
    if (
        value.size >= _LEAST_ELEMENTS
        and len(factors) > 1
        and all(each.shape.startswith(_WIDE_INTEGERS) for each in value.operands[:2])
    ):
        return INTEGERS
    if any(_is_diagonal(each) for each in factors):
        return DIAGONAL
    if any(_is_outer(each) for each in factors):
        return OUTER
    if any(_is_band(each) for each in factors):
        return BANDED_FACTOR
    if value.made.type in ("c64", "c128") and any(_is_real(each) for each in value.operands[:2]):
        return COMPLEX_PRODUCT
    if any(_is_repeated(value, each) for each in value.operands[:2]):
        return REPEATED_FACTOR
    return ""


def _form(factored: Value, kind: str) -> str:
    """The state of a factorization of a matrix whose form allows for less."""
    matrix = factored.operands[0]
    n_rows = (matrix.sizes or [1])[-1]
    if n_rows * n_rows < _LEAST_ELEMENTS:
        return ""
    if nonzero_part(matrix) * n_rows <= _BAND:
        return BANDED
    if n_rows >= _LEAST_RANKED and _rank(matrix) * _FEW_COLUMNS <= n_rows:
        return LOW_RANK
    if kind != _LU:
        return ""
    matrix = matrix.plain
    if _is_triangular(matrix):
        return TRIANGULAR
    return SYMMETRIC if _is_square_of_matrix(matrix) else ""


def _rank(value: Value) -> float:
    """At most the rank of a matrix without its diagonal; infinite: its form does not tell."""
    value = value.plain
    n_rows = value.sizes[-1] if value.sizes else 1
    if nonzero_part(value) * n_rows <= 1:
        return 0
    if value.made.code in ("add", "subtract"):
        return sum({each.plain: _rank(each) for each in value.operands}.values())
    if value.made.code in ("multiply", "divide"):
        others = [each for each in value.operands if each.made.code != "broadcast" or each.operands[0].size > 1]
        return _rank(others[0]) if len(others) == 1 else math.inf
    if not value.made.is_product or len(value.operands) < 2:
        return math.inf
    n_matrices = value.size // (n_rows * n_rows)
    inner = math.isqrt(value.operands[0].size * value.operands[1].size // max(1, value.size * n_matrices))
    return inner + sum(map(_rank, value.operands[2:]))  # a library may add these


def _is_triangular(value: Value) -> bool:
    is_choice = value.made.code == "select" and len(value.operands) == 3
    return is_choice and is_triangle(value.operands[0]) and any(each.is_number("0") for each in value.operands[1:])


def _is_square_of_matrix(value: Value) -> bool:
    """Whether it is a product of a matrix with itself, and what is zero except on its diagonal."""
    value = value.plain
    if value.made.code == "add":
        n_rows = value.sizes[-1] if value.sizes else 1
        others = [each for each in value.operands if nonzero_part(each) * n_rows > 1]
        return len(others) == 1 and _is_square_of_matrix(others[0])
    if value.made.code in ("multiply", "divide"):
        others = [each for each in value.operands if each.made.code != "broadcast" or each.operands[0].size > 1]
        return len(others) == 1 and _is_square_of_matrix(others[0])
    if not value.made.is_product or len(value.operands) < 2:
        return False
    added = (nonzero_part(each) * value.sizes[-1] > 1 for each in value.operands[2:])  # by a library
    return value.operands[0].plain is value.operands[1].plain and _contracts_alike(value) and not any(added)


def _contracts_alike(product: Value) -> bool:
    """Whether a product adds up over the same dimension of both factors, which have the same elements."""
    if product.size != product.operands[0].size:
        return True  # They are not square, so one dimension alone fits.
    inner = [int(found[1]) for each in _INNER if (found := each.search(product.made.line))]
    turned = [each.made.code == "transpose" for each in product.operands[:2]]
    return len(inner) == len(turned) and (inner[0] == inner[1]) == (turned[0] == turned[1])


def _is_diagonal(value: Value) -> bool:
    """Whether it is chosen where row and column are the same, and zero elsewhere."""
    is_choice = value.made.code == "select" and len(value.operands) == 3
    return is_choice and is_identity(value.operands[0]) and value.operands[2].is_number("0")


def _is_band(value: Value) -> bool:
    """Whether a matrix with long rows has few elements in each that are not zero."""
    n_rows = min(value.sizes, default=0)
    return n_rows >= _LONG_ROWS and nonzero_part(value) * n_rows <= _BAND


def _is_wide(windows: Value) -> bool:
    """Whether windows are wide, begin at each element, and are no sums of all elements before each."""
    told = _MOVED_BY_ONE.search(windows.made.line)
    array = windows.operands[0].sizes if windows.operands else []
    sides = [int(each) for each in told[1].split("x")] if told else []
    sides = [side for side, size in zip(sides, array, strict=False) if side * 2 <= size]
    is_wide = max(sides, default=0) >= _LONG or sum(side >= _WIDE for side in sides) > 1
    return is_wide and windows.size >= _LEAST_ELEMENTS


def _is_real(value: Value) -> bool:
    """Whether complex numbers are made of real ones."""
    while value.made.code in ("reshape", "transpose", "convert", "complex") and value.operands:
        if value.operands[0].shape.startswith("f"):
            return value.made.code == "convert" or value.operands[-1].is_number("0")
        value = value.operands[0]
    return False


def _is_repeated(product: Value, value: Value) -> bool:
    """Whether a factor has each element of a matrix several times, and is written to memory for the product."""
    value = value.plain
    if value.made.code != "broadcast" or value.executed is product.executed:
        return False
    return _LEAST_ELEMENTS <= value.operands[0].made.size <= value.made.size / _REPEATED


def _is_outer(value: Value) -> bool:
    """Whether it multiplies each element of one array by each of another one."""
    if value.made.code != "multiply" or not all(each.made.code == "broadcast" for each in value.operands):
        return False
    given = [each.operands[0] for each in value.operands]
    over = [set(found[1].split(",")) for each in value.operands if (found := DIMENSIONS.search(each.made.line))]
    return len(over) == 2 and not over[0] & over[1] and all(each.made.size > 1 for each in given)


def _is_of_one_channel(value: Value, window: int) -> bool:
    """Whether a filter adds up no channels: then its two sides alone make its work."""
    groups = _GROUPS.search(value.made.line)
    return len(value.operands) > 1 and value.operands[1].made.size <= window * int(groups[1] if groups else 1)
