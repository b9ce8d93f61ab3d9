"""Products and convolutions of an HLO module with a factor whose form makes them cheaper.

diag(d) @ x    rows of x, each times a number        kron(a, b) @ x, outer(a, b) @ x    two products that are smaller
conv(x, outer(g, g))    two of one dimension each
solve(a, b)             if a is banded, triangular or a product of a matrix with itself
"""

from __future__ import annotations

import re

from bragg.grouping.hlo_names import (
    BANDED,
    COMPLEX_PRODUCT,
    DIAGONAL,
    OUTER,
    REPEATED_FACTOR,
    SYMMETRIC,
    TRIANGULAR,
    WIDE_FILTER,
)
from bragg.grouping.hlo_program import HloState
from bragg.record.hooks.jax.hlo.module import DIMENSIONS
from bragg.record.hooks.jax.hlo.zeros import is_identity, is_triangle, nonzero_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.hooks.jax.hlo.graph import HloGraph, Value
    from bragg.record.hooks.jax.hlo.places import Places

__all__ = ["factor_states"]

_DOT, _CONVOLUTION = re.compile(r"\blhs_contracting_dim"), re.compile(r"\bwindow=\{size=(\d+)(?:x(\d+))?[ }]")
_INNER = [re.compile(rf'{side}_contracting_dim(?:s|ensions)"?[=:][{{\["]+(\d+)') for side in ("lhs", "rhs")]
_GROUPS = re.compile(r"\bfeature_group_count=(\d+)")
_FACTORED, _LU = re.compile(r'op_name="(?:[^"]*/)?(lu|cholesky)"'), "lu"
_LEAST_ELEMENTS = 1 << 12
_BAND = 16  # elements of a row that are not zero
_REPEATED = 4
_WIDE, _LONG = 9, 128  # elements of both sides of a filter, or of one


def factor_states(graph: HloGraph, places: Places) -> dict[str, HloState]:
    """States by name of operation, of one computation."""
    found: dict[str, HloState] = {}
    for value in graph.values:
        state = _state(value) if value.made.code in ("dot", "convolution", "custom-call") else ""
        if state:
            place = places.nearest(_lines(graph, value))
            repeats = [each.plain for each in value.operands if state == REPEATED_FACTOR and _is_repeated(value, each)]
            found |= {each.executed.name: HloState(state, place) for each in (value, *repeats)}
    return found


def _lines(graph: HloGraph, value: Value) -> list[str]:
    """Text of an operation, then of what is around it: XLA's own versions of some have no place."""
    return [each.made.line for each in (value, *graph.users(value), *value.operands)]


def _state(value: Value) -> str:
    if window := _CONVOLUTION.search(value.made.line):
        sides = int(window[1]), int(window[2] or 1)
        is_wide = min(sides) >= _WIDE or max(sides) >= _LONG
        return WIDE_FILTER if is_wide and _is_of_one_channel(value, sides[0] * sides[1]) else ""
    if told := _FACTORED.search(value.made.line):
        return _form(value, told[1]) if value.operands else ""
    if not _DOT.search(value.made.line):
        return ""
    factors = [each.plain for each in value.operands[:2] if each.made.size >= _LEAST_ELEMENTS]
    if any(_is_diagonal(each) for each in factors):
        return DIAGONAL
    if any(_is_outer(each) for each in factors):
        return OUTER
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
    if kind != _LU:
        return ""
    matrix = matrix.plain
    if _is_triangular(matrix):
        return TRIANGULAR
    return SYMMETRIC if _is_square_of_matrix(matrix) else ""


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
    if not _DOT.search(value.made.line) or len(value.operands) < 2:
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
