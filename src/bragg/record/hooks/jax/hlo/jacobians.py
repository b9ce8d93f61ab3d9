"""Jacobians and Hessians that an HLO module computes as a whole, by the scopes of `jacobians.py`.

jit(f)/counted_jacobian_0/vmap(transpose(jvp()))/mul       the backward pass of a Jacobian, for all outputs
jit(f)/counted_jacobian_1/vmap(jvp(transpose(jvp())))/mul  the derivative of a gradient, for all inputs
"""

from __future__ import annotations

import re

from bragg.grouping.hlo_names import FORWARD_JACOBIAN, JACOBIAN, REVERSE_JACOBIAN, WHOLE_HESSIAN
from bragg.grouping.hlo_program import NOWHERE, HloPlace, HloState
from bragg.record.hooks.jax.jacobians import JACOBIANS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.hooks.jax.hlo.module import HloModule
    from bragg.record.hooks.jax.jacobians import Jacobian


_SCOPE = re.compile(rf'op_name="[^"]*?\b{JACOBIAN}(\d+)\b([^"]*)"')
_SOLVES = re.compile(r'op_name="[^"]*/(?:lu|cholesky|triangular_solve|eigh?|svd)"')
_MANY = 4  # times as many passes as the other mode takes


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
