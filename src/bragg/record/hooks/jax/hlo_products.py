"""Matrix products of an HLO module, and orders of two of them that compute more than the other order."""

from __future__ import annotations

import re
from math import prod
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.hooks.jax.hlo_flow import HloFlow
    from bragg.record.hooks.jax.hlo_module import HloModule, Instruction

__all__ = ["PRODUCTS", "has_costly_order"]

PRODUCTS = ("dot", "custom-call")
"""Instructions that may be matrix products; those of libraries are calls."""

# "lhs_contracting_dims={1}" of dot, `"lhs_contracting_dimensions":["1"]` of calls.
_INNER, _BATCH = (
    re.compile(rf'lhs_{kind}_dim(?:s|ensions)"?[=:][{{\[]([\d,"]*)[}}\]]') for kind in ("contracting", "batch")
)
_MUCH_LESS = 0.5


class _Product(NamedTuple):
    """Sizes of a product of matrices [batch, rows, inner] and [batch, inner, columns]."""

    batch: int
    rows: int
    inner: int
    columns: int


def has_costly_order(module: HloModule, flow: HloFlow, computation: str, each: Instruction) -> bool:
    """Whether (a b) c, whose a b this is, takes at least twice as many operations as a (b c), as far as sizes tell."""
    first = _product_in(module, flow, computation, each)
    uses = flow.uses(computation, each) if first else []
    if first is None or len(uses) != 1 or uses[0].code not in PRODUCTS:
        return False
    second = _product(flow, flow.computation_of(uses[0]), uses[0])
    if second is None or second.batch != first.batch or second.inner not in (first.rows, first.columns):
        return False
    size = first.rows * first.columns
    others = [
        other
        for own, other in ((second.rows, second.columns), (second.columns, second.rows))
        if own * second.inner == size
    ]
    if not others:
        return False
    now = size * (first.inner + min(others))
    return others[0] * first.inner * (first.rows + first.columns) <= _MUCH_LESS * now


def _product_in(module: HloModule, flow: HloFlow, computation: str, each: Instruction) -> _Product | None:
    """The product that an instruction is, or the only one in what is fused."""
    if each.code != "fusion":
        return _product(flow, computation, each)
    inside = [row for row in module.computations.get(each.called, ()) if row.code == "dot"]
    return _product(flow, each.called, inside[0]) if len(inside) == 1 else None


def _product(flow: HloFlow, computation: str, each: Instruction) -> _Product | None:
    inner = _INNER.search(each.line)
    if inner is None or len(each.operands) < 2:
        return None
    left, right = (flow.shape_of(computation, name) for name in each.operands[:2])
    n_inner, n_batch = (_sizes(left, found[1] if found else "") for found in (inner, _BATCH.search(each.line)))
    both = n_inner * n_batch
    return _Product(n_batch, prod(left) // both, n_inner, prod(right) // both) if both else None


def _sizes(shape: list[int], dimensions: str) -> int:
    places = [int(each) for each in re.findall(r"\d+", dimensions)]
    return prod(shape[each] for each in places) if all(each < len(shape) for each in places) else 0
