"""Sums over neighbours in an HLO module, as those of graph networks.

segment_sum(h[src] * weight[:, None], dst) @ w     moves rows as wide as h; those of h @ w may be narrow
"""

from __future__ import annotations

from bragg.grouping.hlo_names import LATE_PROJECTION
from bragg.grouping.hlo_program import HloState
from bragg.record.hooks.jax.hlo.module import DIMENSIONS
from bragg.record.hooks.jax.hlo.shares import numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.hooks.jax.hlo.graph import HloGraph, Value
    from bragg.record.hooks.jax.hlo.places import Places


_LEAST_ELEMENTS = 1 << 16
_NARROWER = 2  # times, at least
_ADDS = "scatter-add"
_BACKWARD = "transpose("
_SAME_ELEMENTS = frozenset({"reshape", "convert"})


def aggregation_states(graph: HloGraph, places: Places) -> dict[str, HloState]:
    """States by name of operation, of sums over rows looked up that a product makes narrower afterwards."""
    found: dict[str, HloState] = {}
    for product in graph.values:
        is_forward = product.made.is_product and _BACKWARD not in product.made.line
        way = _aggregation(graph, product) if is_forward else []
        state = HloState(LATE_PROJECTION, places.nearest([product.made.line, product.executed.line])) if way else None
        found |= {each.executed.name: state for each in way if state}
    return found


def _aggregation(graph: HloGraph, product: Value) -> list[Value]:
    """What looks up the rows of a factor and adds them up; empty: they are not made so, or not made narrower."""
    for factor in product.operands[:2]:
        summed = _unscaled(factor)[-1]
        if summed.made.code != "scatter" or _ADDS not in summed.made.line or len(summed.operands) != 3:
            continue
        way = _unscaled(summed.operands[2])
        is_sum = summed.operands[0].is_number("0") and way[-1].made.code == "gather"
        n_rows = way[-1].operands[0].size if is_sum else 0
        is_large = way[-1].size >= max(_LEAST_ELEMENTS, _NARROWER * summed.size, n_rows)
        if is_sum and is_large and _NARROWER * product.size <= summed.size and _is_multiplied(graph, summed):
            return [summed, *way]
    return []


def _unscaled(value: Value) -> list[Value]:
    """A value and those that it is made from, each row multiplied by a number; the last is the first one of them."""
    way = [value]
    while True:
        value = way[-1]
        scaled = value.operands[0] if value.made.code in _SAME_ELEMENTS and value.operands else _scaled(value)
        if scaled is None:
            return way
        way.append(scaled)


def _scaled(value: Value) -> Value | None:
    """The rows that are multiplied by numbers, or divided by them; None: it does something else."""
    if value.made.code not in ("multiply", "divide") or len(value.operands) != 2:
        return None
    one, other = value.operands
    if _is_number_for_each_row(other):
        return one
    return other if value.made.code == "multiply" and _is_number_for_each_row(one) else None


def _is_number_for_each_row(value: Value) -> bool:
    while value.made.code in _SAME_ELEMENTS and value.operands:
        value = value.operands[0]
    return value.made.code == "broadcast" and len(value.sizes) - 1 not in numbers(DIMENSIONS, value.made.line)


def _is_multiplied(graph: HloGraph, value: Value) -> bool:
    """Whether all that is done with rows are products."""
    users = graph.users(value)
    return bool(users) and all(
        each.made.is_product or (value in _unscaled(each)[1:2] and _is_multiplied(graph, each)) for each in users
    )
