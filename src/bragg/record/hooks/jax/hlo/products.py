"""Matrix products of an HLO module that compute more than they need, and sums that could be products."""

from __future__ import annotations

import re
from math import prod
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.hooks.jax.hlo.flow import HloFlow
    from bragg.record.hooks.jax.hlo.module import HloModule, Instruction


# "lhs_contracting_dims={1}" of dot, `"lhs_contracting_dimensions":["1"]` of calls.
_INNER, _BATCH = (
    re.compile(rf'lhs_{kind}_dim(?:s|ensions)"?[=:][{{\[]([\d,"]*)[}}\]]') for kind in ("contracting", "batch")
)
_PRODUCTS = ("dot", "custom-call")  # those of libraries are calls
_SCALES, _ADDS = frozenset({"multiply", "divide"}), frozenset({"add", "subtract", "negate"})
_MUCH_LESS = 0.5
_MANY_PAIRS = 1 << 20
_LEAST_INNER = 8  # below, a matrix product has little to add up


class _Product(NamedTuple):
    """Sizes of a product of matrices [batch, rows, inner] and [batch, inner, columns]."""

    batch: int
    rows: int
    inner: int
    columns: int


def has_costly_order(module: HloModule, flow: HloFlow, computation: str, each: Instruction) -> bool:
    """Whether (a b) c, whose a b this is, takes at least twice as many operations as a (b c), as far as sizes tell."""
    first = _product_in(module, flow, computation, each)
    uses = flow.uses(computation, each, _PRODUCTS) if first else []
    if first is None or len(uses) != 1:
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


def multiplies_zeros_and_ones(module: HloModule, flow: HloFlow, computation: str, each: Instruction) -> bool:
    """Whether one of the matrices is a comparison with row or column numbers: rows that are one-hot, a triangle."""
    home, product = _dot_in(module, flow, computation, each)
    factors = [flow.made(home, name) for name in product.operands[:2]] if product else []
    # What is fused gets some of its factors from where it stands.
    given = [factor.position for factor in factors if factor and factor.code == "parameter" and each.code == "fusion"]
    factors += [flow.made(computation, each.operands[at]) for at in given if at < len(each.operands)]
    return any(factor is not None and _is_comparison(flow, factor) for factor in factors)


def _is_comparison(flow: HloFlow, made: Instruction) -> bool:
    unpadded = flow.made(flow.computation_of(made), made.operand) if made.code == "pad" else made
    return unpadded is not None and _compares(flow, unpadded)


def _compares(flow: HloFlow, made: Instruction) -> bool:
    if made.code not in ("convert", "select") or not all(_is_number(flow, made, name) for name in made.operands[1:]):
        return False
    compared = flow.made(flow.computation_of(made), made.operand)
    if compared is None or compared.code != "compare":
        return False
    computation = flow.computation_of(compared)
    return any(_is_numbering(flow, computation, each) for each in compared.operands)


def _is_number(flow: HloFlow, choice: Instruction, name: str) -> bool:
    """Whether what a choice takes is one constant number."""
    home = flow.computation_of(choice)
    made = flow.made(home, name)
    if made is not None and made.code == "broadcast":
        made = flow.made(flow.computation_of(made), made.operand)
    return made is not None and made.code == "constant"


def _is_numbering(flow: HloFlow, computation: str, name: str) -> bool:
    made = flow.made(computation, name)
    while made is not None and made.code in ("broadcast", "add", "convert"):
        computation = flow.computation_of(made)
        made = flow.made(computation, made.operand)
    return made is not None and made.code == "iota"


def adds_up_differences(module: HloModule, flow: HloFlow, each: Instruction) -> bool:
    """Whether it adds up squares of differences of all pairs of rows, as distances and densities are."""
    for row in module.computations.get(each.called, ()):
        terms = flow.made(each.called, row.operand) if row.code == "reduce" else None
        squares = _without(_SCALES | _ADDS, flow, each.called, terms)
        if squares is None or squares.code != "multiply" or len(set(squares.operands)) != 1:
            continue
        difference = _without(_SCALES, flow, each.called, flow.made(each.called, squares.operand))
        if difference is None or difference.code != "subtract":
            continue
        if difference.size < max(_MANY_PAIRS, _LEAST_INNER * row.size):
            continue
        made = [flow.made(each.called, name) for name in difference.operands]
        if all(one is not None and one.code == "broadcast" and _grows(flow, each.called, one) for one in made):
            return True
    return False


def _without(codes: frozenset[str], flow: HloFlow, computation: str, made: Instruction | None) -> Instruction | None:
    """What meets, by these, values that do not differ for each pair and element, as weights; None: both do."""
    while made is not None and made.code in codes and len(set(made.operands)) == len(made.operands):
        operands = [flow.made(computation, name) for name in made.operands]
        others = [one for one in operands if one is None or one.code != "broadcast"]
        is_divisor = made.code == "divide" and others == operands[1:]
        made = others[0] if len(others) == 1 and not is_divisor else None
    return made


def _grows(flow: HloFlow, computation: str, broadcast: Instruction) -> bool:
    """Whether it repeats rows, not one number."""
    return 1 < prod(flow.shape_of(computation, broadcast.operand)) < broadcast.size


def _product_in(module: HloModule, flow: HloFlow, computation: str, each: Instruction) -> _Product | None:
    """The product that an instruction is, or the only one in what is fused."""
    home, product = _dot_in(module, flow, computation, each)
    return _product(flow, home, product) if product else None


def _dot_in(module: HloModule, flow: HloFlow, computation: str, each: Instruction) -> tuple[str, Instruction | None]:
    """Where the product stands that an instruction is, or that what it has fused returns, and it."""
    made, home = each, computation
    if each.code == "fusion":
        root = module.root(each.called)
        made, home = (flow.made(each.called, root.name) if root else None) or each, each.called
    return home, made if made.is_product else None


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
