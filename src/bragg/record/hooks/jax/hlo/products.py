"""Matrix products of an HLO module that compute more than they need, and sums that could be products."""

from __future__ import annotations

import re
from itertools import pairwise
from math import prod

from bragg.record.hooks.jax.hlo.module import DIMENSIONS
from bragg.record.hooks.jax.hlo.shares import alike_dimensions, dimensions_of, numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bragg.record.hooks.jax.hlo.flow import HloFlow
    from bragg.record.hooks.jax.hlo.graph import HloGraph, Value
    from bragg.record.hooks.jax.hlo.module import HloModule, Instruction

    Steps = list[tuple[list[Instruction], Value]]


_SCALES, _ADDS = frozenset({"multiply", "divide"}), frozenset({"add", "subtract", "negate"})
_EPILOGUE = re.compile(r'"epilogue":"(?!DEFAULT")')  # what a library does to each element after a product
_LAYOUT = re.compile(r" = \(?[a-z]\w*\[[\d,]*\]\{([\d,]+)")
_MANY_PAIRS = 1 << 20
_LEAST_INNER = 8  # below, a matrix product has little to add up


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


def _dot_in(module: HloModule, flow: HloFlow, computation: str, each: Instruction) -> tuple[str, Instruction | None]:
    """Where the product stands that an instruction is, or that what it has fused returns, and it."""
    made, home = each, computation
    if each.code == "fusion":
        root = module.root(each.called)
        made, home = (flow.made(each.called, root.name) if root else None) or each, each.called
    return home, made if made.is_product else None


def costly_products(graph: HloGraph, second: Value) -> Iterator[Value]:
    """Factors that are products, and what transposes or scales these, if another order takes half the operations."""
    for side in range(min(2, len(second.operands))):
        steps = _steps_to_product(graph, second, side)
        if steps and _is_costly(graph, second, side, steps):
            yield from (each for _, each in steps if each.made.is_product or each.executed is not second.executed)


def _steps_to_product(graph: HloGraph, user: Value, at: int) -> Steps:
    """What a factor is, and what that is made from, each with its way: the product comes last. Empty: there is none."""
    steps: Steps = []
    is_scaled = False  # by something that may be computed from the product
    while (value := user.operands[at]) not in graph.results and (is_scaled or len(graph.users(value)) == 1):
        steps.append((graph.way_to(user, at), value))
        if value.made.is_product:
            return [] if _EPILOGUE.search(value.made.line) else steps
        user, at = value, 0
        if value.made.code in _SCALES:
            scaled = [each for each in (0, 1) if _is_of_rows(value.operands[1 - each])]
            if not scaled or (value.made.code == "divide" and scaled[0]):
                break
            at, is_scaled = scaled[0], True
        elif value.made.code not in ("transpose", "convert"):
            break
    return []


def _sizes_before(steps: Steps, sizes: dict[int, int]) -> dict[int, int] | None:
    """Sizes by dimension of a factor, or of parts of these, in the product that it is; None: they are not known."""
    for way, value in steps:
        for one, other in pairwise(way):
            moved = _after_bitcast(sizes, one, other) if one.code == "bitcast" else sizes
            if moved is None:
                return None
            sizes = moved
        if value.made.code == "transpose":
            order = numbers(DIMENSIONS, value.made.line)
            sizes = {order[each]: size for each, size in sizes.items()}
    return sizes


def _after_bitcast(sizes: dict[int, int], one: Instruction, other: Instruction) -> dict[int, int] | None:
    orders = [_in_memory(each) for each in (one, other)]
    shapes = [[each.sizes[0][at] for at in order] for each, order in zip((one, other), orders, strict=True)]
    moved: dict[int, int] = {}
    for begins, ends in alike_dimensions(shapes[0], shapes[1]):
        size = prod(sizes.get(orders[0][each], 1) for each in begins)
        large = {orders[1][each]: shapes[1][each] for each in ends if shapes[1][each] > 1}
        if 1 < size < prod(large.values()):
            if len(large) > 1:
                return None
            large = dict.fromkeys(large, size)
        moved |= large if size > 1 else {}
    return moved


def _in_memory(made: Instruction) -> list[int]:
    """Dimensions of an array, the outermost one first."""
    told = _LAYOUT.match(made.line, made.line.find(" = "))
    return [int(each) for each in reversed(told[1].split(","))] if told else list(range(len(made.sizes[0])))


def _is_of_rows(scale: Value) -> bool:
    """Whether it repeats one number for all of a row or column of each matrix."""
    scale = scale.plain
    n = len(scale.sizes)
    return scale.made.code == "broadcast" and not {n - 2, n - 1} <= set(numbers(DIMENSIONS, scale.made.line))


def _large(sizes: list[int], dimensions: Iterable[int]) -> dict[int, int]:
    return {each: sizes[each] for each in dimensions if sizes[each] > 1}


def _is_costly(graph: HloGraph, second: Value, side: int, steps: Steps) -> bool:
    """Whether (a @ b) with c takes twice as many operations as a with c, then b, or b with c, then a."""
    (seen, *_), first = steps[0][0], steps[-1][1]
    paired, summed = (_sizes_before(steps, _large(seen.sizes[0], each)) for each in dimensions_of(second, side))
    batch, inner = dimensions_of(first, 0)
    left = next((each.sizes[0] for each in graph.way_to(first, 0)), [])
    bounds = pairwise((0, len(batch), len(left) - len(inner), len(first.sizes)))
    pairs, rows, columns = (_large(first.sizes, range(*ends)) for ends in bounds)
    if len(first.operands) > 2 or not left or summed is None or paired != pairs or pairs.keys() & summed.keys():
        return False
    n_inner, n_pairs = prod(left[each] for each in inner), prod(pairs.values())
    m, n = prod(rows.values()), prod(columns.values())
    m_summed, n_summed = (prod(summed.get(each, 1) for each in kind) for kind in (rows, columns))
    width = second.operands[1 - side].size / (n_pairs * m_summed * n_summed)
    with_a, with_b = m * n_summed + n * m / m_summed, n * m_summed + m * n / n_summed
    return 2 * width * n_inner * min(with_a, with_b) <= m * n * (n_inner + width)
