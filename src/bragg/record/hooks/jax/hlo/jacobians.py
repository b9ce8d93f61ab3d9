"""Jacobians and Hessians that an HLO module computes as a whole, by the scopes of `jacobians.py`.

jit(f)/counted_jacobian_0/vmap(transpose(jvp()))/mul       the backward pass of a Jacobian, for all outputs
jit(f)/counted_jacobian_1/vmap(jvp(transpose(jvp())))/mul  the derivative of a gradient, for all inputs
jacfwd(f)(x) @ v           all that is used of it is a product, which one pass gives
"""

from __future__ import annotations

import re

from bragg.grouping.hlo_names import FORWARD_JACOBIAN, JACOBIAN, REVERSE_JACOBIAN, WHOLE_HESSIAN, WHOLE_JACOBIAN
from bragg.grouping.hlo_program import NOWHERE, HloPlace, HloState
from bragg.record.hooks.jax.jacobians import JACOBIANS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bragg.record.hooks.jax.hlo.graph import HloGraph, Value
    from bragg.record.hooks.jax.hlo.module import HloModule, Instruction
    from bragg.record.hooks.jax.jacobians import Jacobian


_SCOPE = re.compile(rf'op_name="[^"]*?\b{JACOBIAN}(\d+)\b([^"]*)"')
_SOLVES = re.compile(r'op_name="[^"]*/(?:lu|cholesky|triangular_solve|eigh?|svd)"')
_LOOP = re.compile(rf"/while/body\b[^\"]*{JACOBIAN}")
_SAME_ELEMENTS = frozenset({"reshape", "transpose", "convert", "negate"})
_MANY = 4  # times as many passes as the other mode takes, or vectors
_LEAST_PASSES = 8


def jacobian_states(module: HloModule) -> dict[str, HloState]:
    """States by name of operation: Hessians that nothing solves with, and Jacobians in the mode of more passes."""
    if not JACOBIANS:
        return {}
    inside = [
        (each, found) for rows in module.computations.values() for each in rows if (found := _SCOPE.search(each.line))
    ]
    hessians = {found[1] for _, found in inside if "transpose(" in found[2] and not _is_reverse(found[1])}
    solves = hessians and any(_SOLVES.search(each.line) for _, rows in module.executed() for each in rows)
    states: dict[str, HloState] = {}
    for each, found in inside:
        jacobian = JACOBIANS.get(found[1])
        state = _state(jacobian, found[1] in hessians and not solves) if jacobian else ""
        if state and jacobian:
            states[each.name] = HloState(state, _place(jacobian))
    return states


def product_states(module: HloModule, graphs: Iterable[HloGraph]) -> dict[str, HloState]:
    """States by name of operation, of Jacobians of which all that is used is products with few vectors.

    Args:
        module: The module.
        graphs: Values of its entry, and of the bodies of its loops.
    """
    if not JACOBIANS:
        return {}
    graphs = [*graphs]
    within: dict[str, list[tuple[HloGraph, Value]]] = {}
    for graph in graphs:
        for each in graph.values:
            if (number := _number(each.made)) and JACOBIANS[number].n_passes >= _LEAST_PASSES:
                within.setdefault(number, []).append((graph, each))
    found: dict[str, HloState] = {}
    for number, values in within.items():
        products = [_is_multiplied(graphs, graph, each, user) for graph, each, user in _uses(module, number, values)]
        if products and all(products):
            state = HloState(WHOLE_JACOBIAN, _place(JACOBIANS[number]))
            found |= dict.fromkeys(module.run_by(each.executed for _, each in values), state)
    return found


def _number(made: Instruction) -> str:
    """The Jacobian of whose passes an instruction is a part; empty: of none."""
    found = _SCOPE.search(made.line) if JACOBIAN in made.line else None
    if not found or "vmap(" not in found[2] or found[1] not in JACOBIANS:
        return ""
    is_hessian = "transpose(" in found[2] and not _is_reverse(found[1])
    return "" if is_hessian else found[1]


def _uses(
    module: HloModule, number: str, values: list[tuple[HloGraph, Value]]
) -> Iterator[tuple[HloGraph, Value, Value | None]]:
    """What else takes large values of a Jacobian; None: the computation returns it."""
    for graph, each in values:
        users = [user for user in graph.users(each) if {*_parts_of(module, graph, user)} != {number}]
        for part in {part for user in users for part in user.operands if part.made is each.made}:
            if _has_passes(part, number):
                yield from ((graph, part, user) for user in users if part in user.operands)
        if each in graph.results and _has_passes(each, number) and not graph.is_turn:
            yield graph, each, None


def _parts_of(module: HloModule, graph: HloGraph, user: Value) -> Iterator[str]:
    """The Jacobians that an operation is a part of; of a tuple, the loop that takes or returns it."""
    if user.made.code != "tuple":
        yield _number(user.made)
    elif takers := graph.users(user):
        yield from (_number(each.made) for each in takers)
    elif graph.computation in module.callers:
        yield _number(module.callers[graph.computation][1])


def _has_passes(value: Value, number: str) -> bool:
    """Whether a value has a row for each pass."""
    n_passes = JACOBIANS[number].n_passes
    return value.size > n_passes and value.size % n_passes == 0


def _is_multiplied(graphs: list[HloGraph], graph: HloGraph, value: Value, user: Value | None) -> bool:
    """Whether all that this user does with a value is to multiply it by few vectors."""
    if user is not None and user.made.is_product:
        return _is_of_few(value, user)
    if user is None or user in graph.results:
        return False
    users = graph.users(user)
    if user.made.code in _SAME_ELEMENTS:
        return bool(users) and all(_is_multiplied(graphs, graph, user, each) for each in users)
    if user.made.code == "multiply":
        others = [each for each in user.operands if each is not value]
        is_by_vector = bool(others) and others[0].made.code == "broadcast" and _is_small(others[0].operands[0], value)
        return is_by_vector and all(each.made.code == "reduce" and _is_small(each, value) for each in users)
    if user.made.code == "tuple" and _LOOP.search(value.made.line):  # XLA has taken it out of a loop
        inside = [(body, each) for body in graphs for each in body.given.values() if each.before is value]
        taken = [(body, each, taker) for body, each in inside for taker in body.users(each) if each in taker.operands]
        return bool(taken) and all(_is_multiplied(graphs, *each) for each in taken if each[2].made.code != "tuple")
    return False


def _is_of_few(value: Value, product: Value) -> bool:
    """Whether a product of a matrix has few columns."""
    others = [each for each in product.operands[:2] if each is not value]
    return len(others) == 1 and _is_small(others[0], value) and _is_small(product, value)


def _is_small(one: Value, other: Value) -> bool:
    return one.size * _MANY <= other.size


def place_of_jacobian(line: str) -> HloPlace:
    """Where the Jacobian is asked for that an instruction belongs to; `NOWHERE`: to none."""
    found = _SCOPE.search(line) if JACOBIAN in line else None
    jacobian = JACOBIANS.get(found[1]) if found else None
    return _place(jacobian) if jacobian else NOWHERE


def _place(jacobian: Jacobian) -> HloPlace:
    file, _, line = jacobian.place.rpartition(":")
    return HloPlace(file, int(line or 0))


def _is_reverse(number: str) -> bool:
    return number not in JACOBIANS or JACOBIANS[number].is_reverse


def _state(jacobian: Jacobian, is_hessian: bool) -> str:
    if is_hessian:
        return WHOLE_HESSIAN
    if jacobian.n_passes < _MANY * jacobian.n_others:
        return ""
    return REVERSE_JACOBIAN if jacobian.is_reverse else FORWARD_JACOBIAN
