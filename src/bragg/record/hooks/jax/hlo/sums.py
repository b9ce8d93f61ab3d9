"""Sums of an HLO module that a matrix product, or one less, would give.

(a[:, :, None] * b[None]).sum(1)    a @ b, without tensor cores
a @ x + a @ y                       a @ (x + y)
(x[:, None] >= edges).sum(1)        jnp.searchsorted: what is true, or chosen, of comparisons of all pairs
(x @ w).sum(0)                      x.sum(0) @ w
"""

from __future__ import annotations

import re
from math import prod

from bragg.grouping.hlo_names import COMPARED_PAIRS, SPLIT_PRODUCT, SUMMED_PRODUCT, SUMMED_ROWS
from bragg.grouping.hlo_program import HloState
from bragg.record.hooks.jax.hlo.module import BATCHED, DIMENSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.hooks.jax.hlo.graph import HloGraph, Value
    from bragg.record.hooks.jax.hlo.places import Places


_NUMBERED = re.compile(r"\biota_dimension=(\d+)")
_CONVOLUTIONS = ("convolution", "custom-call")
_SUMS = ("reduce", "reduce-window")  # XLA adds up long rows in parts
_LEAST_PRODUCTS, _LEAST_ELEMENTS = 1 << 22, 1 << 14
_LEAST_COMPARED = 1 << 9  # with each element: fewer cost less than a sort, or a binary search
_LEAST_SUMMED = 8  # rows
_SINGLE_PIXEL = re.compile(r"\bwindow=\{size=1(?:x1)*[ }].*dim_labels=(\w+)_\w+->(\w+)")


def sum_states(graph: HloGraph, places: Places) -> dict[str, HloState]:
    """States by name of operation, of one computation."""
    found: dict[str, HloState] = {}
    for value in graph.values:
        state = _of_sum(value) if value.made.code in _SUMS and value.codes.endswith("add") else ""
        if state:
            place = places.nearest([value.made.line, value.executed.line, value.operands[0].made.line])
            found[value.executed.name] = HloState(state, place)
        for product in _split(value) if value.made.code in ("add", "custom-call") else ():
            found[product.executed.name] = HloState(SPLIT_PRODUCT, places.read(product.made.line).place)
        rows = _summed(graph, value) if value.made.code == "reduce" and value.codes.endswith("add") else None
        if rows:
            found[rows.executed.name] = HloState(SUMMED_ROWS, places.nearest([rows.made.line, value.made.line]))
    return found


def _summed(graph: HloGraph, value: Value) -> Value | None:
    """The product of which a sum takes rows or columns, if nothing else uses it; None: there is none."""
    product, user = value.operands[0], value
    while product not in graph.results and graph.users(product) == [user]:
        if _is_product_of_rows(product):
            is_long = product.size >= max(_LEAST_ELEMENTS, _LEAST_SUMMED * value.size)
            return product if is_long and _sums_rows(product, user, value) else None
        next_one = _scaled(product)
        if next_one is None:
            return None
        product, user = next_one, product
    return None


def _is_product_of_rows(value: Value) -> bool:
    return value.made.is_product or (value.made.code in _CONVOLUTIONS and bool(_SINGLE_PIXEL.search(value.made.line)))


def _scaled(value: Value) -> Value | None:
    """What a value is, in another shape or times a number; None: it is something else."""
    if value.made.code in ("reshape", "transpose", "convert", "negate"):
        return value.operands[0]
    if value.made.code in ("multiply", "divide"):
        numbers = [each for each in value.operands if each.made.code == "broadcast" and each.operands[0].size == 1]
        others = [each for each in value.operands if each not in numbers]
        return others[0] if len(numbers) == len(others) == 1 else None
    return None


def _sums_rows(product: Value, user: Value, value: Value) -> bool:
    """Whether what is added up are rows or columns, no pairs of matrices that are multiplied one by one."""
    if pixels := _SINGLE_PIXEL.search(product.made.line):
        summed = [product.sizes[each] for each in range(len(product.sizes)) if pixels[2][each] != "f"]
        return user is value and prod(summed) % (product.size // value.size) == 0
    batched = BATCHED.search(product.made.line)
    n_batch = len(re.findall(r"\d+", batched[1])) if batched else 0
    if not n_batch:
        return True
    dropped = _dimensions(value)
    kept = [size for at, size in enumerate(product.sizes) if str(at) not in dropped]
    return user is value and kept == value.sizes and all(int(each) >= n_batch for each in dropped)


def _of_sum(value: Value) -> str:
    is_product = value.made.code == "reduce" and _is_product(value)
    return SUMMED_PRODUCT if is_product else COMPARED_PAIRS if _compares_pairs(value) else ""


def _compares_pairs(value: Value) -> bool:
    """Whether it adds up what is true of pairs of elements, or one of both where that is true."""
    terms = value.operands[0].plain if value.operands else value
    if terms.made.code == "select" and len(terms.operands) == 3 and terms.operands[2].is_number("0"):
        chosen, terms = terms.operands[1], terms.operands[0]
        if chosen.made.code != "broadcast" or chosen.operands[0].size * _LEAST_COMPARED > chosen.size:
            return False
    while terms.made.code == "broadcast" and terms.operands:
        terms = terms.operands[0]
    if terms.made.code != "compare" or any(each.sizes != terms.sizes for each in terms.operands):
        return False  # A bitcast in between has changed the shape.
    over = [_repeated_from(each) for each in terms.operands[:2]]
    own = [prod(terms.sizes[each] for each in over[at] - over[1 - at]) for at in (0, 1)]
    return min(own) >= _LEAST_COMPARED


def _repeated_from(value: Value) -> set[int]:
    """Dimensions in which elements differ."""
    while value.made.code == "convert" and value.operands:
        value = value.operands[0]
    if value.made.code == "iota" and (told := _NUMBERED.search(value.made.line)):
        return {int(told[1])}
    return {int(each) for each in _dimensions(value)} if value.made.code == "broadcast" else set()


def _is_product(value: Value) -> bool:
    """Whether it adds up products of elements as a matrix product does: each of rows by each of columns."""
    factors = value.operands[0].plain if value.operands else value
    if factors.made.code != "multiply" or factors.made.size < _LEAST_PRODUCTS or value.operands[0] is not factors:
        return False
    added = _dimensions(value)
    over = [[_dimensions(each) for each in _terms(factor)] for factor in factors.operands]
    is_square = len(over) == 2 and factors.operands[0] is factors.operands[1]
    is_short = any(len(each) > 1 for each in over) and factors.size < _LEAST_SUMMED * value.size
    if len(over) != 2 or not added or is_square or is_short:  # squares of differences have a state of their own
        return False
    return any(added <= one & other and one - other and other - one for one in over[0] for other in over[1])


def _terms(factor: Value) -> list[Value]:
    """What is repeated for each pair: a factor, or the terms of its sum, each of which can be multiplied apart."""
    terms = factor.operands if factor.made.code in ("add", "subtract") else [factor]
    return terms if all(each.made.code == "broadcast" for each in terms) else []


def _dimensions(value: Value) -> set[str]:
    found = DIMENSIONS.search(value.made.line)
    return set(found[1].split(",")) - {""} if found else set()


def _split(value: Value) -> list[Value]:
    """The products that a sum has, if they share a factor: those that one product of a sum would spare."""
    if value.made.code == "custom-call":  # which may add to what a product before it gives
        parts = [value, value.operands[2].plain] if len(value.operands) == 3 else []
    else:
        parts = [each.plain for each in value.operands]
    is_long = len(parts) == 2 and all(each.made.is_product and each.made.size >= _LEAST_ELEMENTS for each in parts)
    if not is_long or parts[0] is parts[1]:
        return []
    shares = any(one is other for one, other in zip(parts[0].operands[:2], parts[1].operands[:2], strict=True))
    return parts[1:] if shares and parts[0].shape == parts[1].shape else []
