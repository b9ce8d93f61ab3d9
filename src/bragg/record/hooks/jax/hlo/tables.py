"""Rows of tables in an HLO module: gradients that are mostly zero, work on rows that were looked up many times, ranks.

grad(loss)(table)            zeros of the size of the table, of which a few rows get a gradient
table[ids] @ w               the same product for each time that a row is looked up
einsum("nd,ndh", x, w[ids])  a copy of a matrix for each row
x[:, arange + windows]       each element as often as windows overlap
stack([x[:, i:i + n] ...])   the same, as patches are put side by side for a product
x[:, ids]                    elements that lie far apart in memory, one by one
argsort(argsort(x))          a sort of numbers from 0, which a scatter would put in their places
"""

from __future__ import annotations

import re
from math import prod

from bragg.grouping.hlo_names import DENSE_GRADIENT, LATE_PRODUCT, LOOKED_UP_MATRICES, RANKS, SCATTERED, WINDOWS
from bragg.grouping.hlo_program import HloState
from bragg.record.hooks.jax.hlo.shares import numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.hooks.jax.hlo.graph import HloGraph, Value
    from bragg.record.hooks.jax.hlo.places import Places


_BACKWARD = "transpose("
_LEAST_ELEMENTS = 1 << 16
_LEAST_MATRIX = 1 << 10
_FEW = 4  # times as many elements as are used
_OVERLAPS = 8  # of each element
_MOST_USES = 16
_FAR_APART = 32  # elements of a column
_SAME_ELEMENTS = frozenset({"reshape", "transpose", "convert"})
_MAPPED, _SLICES, _ORDER = (
    re.compile(rf"\b{name}=\{{([\d,]+)\}}") for name in ("start_index_map", "slice_sizes", "dimensions")
)


def table_states(graph: HloGraph, places: Places) -> dict[str, HloState]:
    """States by name of operation, of one computation."""
    found: dict[str, HloState] = {}
    for value in graph.values:
        state = _state(value) if value.made.code in _JUDGES and _is_large(value) else ""
        if state:
            lines = [each.made.line for each in (value, *value.operands)]
            place = places.nearest([lines[0], value.executed.line, *lines[1:]])
            all_of_it = _of_its_size(graph, value) if state == DENSE_GRADIENT else [value]
            all_of_it += _looked_up(value) if state == LOOKED_UP_MATRICES else []
            found |= {each.executed.name: HloState(state, place) for each in all_of_it}
        if value.made.code == "concatenate" and _is_of_shifted(value) and _is_added_up(graph, value):
            place = places.nearest([value.made.line, value.executed.line, value.operands[0].made.line])
            found[value.executed.name] = HloState(WINDOWS, place)
    return found


def _is_of_shifted(value: Value) -> bool:
    """Whether it puts many large parts of one array side by side."""
    if value.made.size < _LEAST_ELEMENTS or len(value.operands) < _OVERLAPS:
        return False
    arrays = {_array_of(each) for each in value.operands}
    n_parts = sum(each.plain not in arrays for each in value.operands)
    return len(arrays) == 1 and n_parts + 1 >= _OVERLAPS and 2 * value.operands[0].size > arrays.pop().size


def _array_of(value: Value) -> Value:
    """The array of which a value is a part, or the same in a cycle; else itself."""
    value = value.plain
    parts = [each.plain for each in value.operands] if value.made.code == "concatenate" else [value]
    arrays = {each.operands[0].plain for each in parts if each.made.code == "slice"}
    is_of_one = len(arrays) == 1 and all(each.made.code == "slice" for each in parts)
    return arrays.pop() if is_of_one else value


def _is_added_up(graph: HloGraph, value: Value) -> bool:
    """Whether all that is done with a value is a product, or a sum."""
    users = graph.users(value)
    return bool(users) and all(
        each.made.is_product
        or (each.made.code == "reduce" and each.codes.endswith("add"))
        or (each.made.code in _SAME_ELEMENTS and _is_added_up(graph, each))
        for each in users
    )


def _is_large(value: Value) -> bool:
    """Whether it has many elements, or a factor that has."""
    return max(each.made.size for each in (value, *value.operands[:2])) >= _LEAST_ELEMENTS


def _state(value: Value) -> str:
    return _JUDGES[value.made.code](value)


def _of_scatter(value: Value) -> str:
    if _BACKWARD not in value.made.line or len(value.operands) != 3:
        return ""
    table, _, rows = value.operands
    return DENSE_GRADIENT if table.is_number("0") and value.made.size >= _FEW * rows.made.size else ""


def _of_product(value: Value) -> str:
    is_batched = "lhs_batch_dims={0" in value.made.line or 'lhs_batch_dimensions":["' in value.made.line
    if _BACKWARD in value.made.line:
        return ""
    if is_batched:
        return LOOKED_UP_MATRICES if any(map(_is_of_matrices, _looked_up(value))) else ""
    return LATE_PRODUCT if _looked_up(value) else ""


def _of_sum(value: Value) -> str:
    """Of products without a library's call, which XLA adds up."""
    is_product = value.codes.endswith("add") and value.operands[0].plain.made.code == "multiply"
    is_told = is_product and _BACKWARD not in value.made.line and any(map(_is_of_matrices, _looked_up(value)))
    return LOOKED_UP_MATRICES if is_told else ""


def _looked_up(product: Value) -> list[Value]:
    """Its factors that are rows, or matrices, of a table that has fewer than are looked up."""
    terms = product.operands[0].plain if product.made.code == "reduce" else product
    looked_up = [each for factor in terms.operands[:2] if (each := factor.plain).made.code == "gather"]
    return [each for each in looked_up if each.made.size >= _FEW * each.operands[0].made.size]


def _is_of_matrices(gather: Value) -> bool:
    """Whether whole matrices are looked up, not rows or windows."""
    mapped, slices = (numbers(each, gather.made.line) for each in (_MAPPED, _SLICES))
    is_whole = all(slices[each] == 1 for each in mapped) and sum(each > 1 for each in slices) > 1
    return is_whole and prod(slices) >= _LEAST_MATRIX


def _of_gather(value: Value) -> str:
    if len(value.operands) != 2 or _BACKWARD in value.made.line:
        return ""
    table, places = value.operands
    if not places.sources:
        return WINDOWS if value.made.size >= _OVERLAPS * table.made.size else ""
    return SCATTERED if _takes_columns(value, table) else ""


def _takes_columns(value: Value, table: Value) -> bool:
    """Whether it takes whole columns of an argument, whose elements lie a row apart from each other."""
    mapped, slices = (numbers(each, value.made.line) for each in (_MAPPED, _SLICES))
    if table.made.code == "transpose" and (order := _ORDER.search(table.made.line)):
        axes, table = [int(each) for each in order[1].split(",")], table.operands[0]
        mapped = [axes[each] for each in mapped]
        slices = [slices[axes.index(each)] for each in range(len(axes))]
    sizes = table.sizes
    is_given = table.made.code == "parameter" and table.is_row_major and len(sizes) == len(slices) > 1
    return is_given and len(sizes) - 1 in mapped and slices == [*sizes[:-1], 1] and prod(slices) >= _FAR_APART


def _of_sort(value: Value) -> str:
    """Whether it sorts the places that another sort has found."""
    by = value.operands[0].plain if value.operands else value
    return RANKS if by is not value and by.made.code == "sort" and by.element > 0 else ""


_JUDGES = {
    "scatter": _of_scatter,
    "dot": _of_product,
    "reduce": _of_sum,
    "custom-call": _of_product,
    "gather": _of_gather,
    "sort": _of_sort,
}


def _of_its_size(graph: HloGraph, value: Value) -> list[Value]:
    """A value, what it is added to, and what is computed from it element by element."""
    found, waiting = [value.operands[0]], [value]
    while waiting and len(found) < _MOST_USES:
        found.append(each := waiting.pop())
        waiting += [user for user in graph.users(each) if user.made.size == value.made.size and user not in found]
    return [each for each in found if each.executed.code not in ("parameter", "constant", "while")]
