"""Jacobians and Hessians that an HLO module computes as a whole, by the names that JAX gives to what computes them.

jit(f)/jvp()/sin                        forward pass of a Jacobian in reverse mode, once
jit(f)/vmap(transpose(jvp()))/mul       its backward pass, for all outputs
jit(f)/vmap(jvp(transpose(jvp())))/mul  the derivative of a gradient, for all inputs
"""

from __future__ import annotations

import re
from math import prod

from bragg.grouping.hlo_names import REVERSE_JACOBIAN, WHOLE_HESSIAN
from bragg.grouping.hlo_program import NOWHERE, HloPlace, HloState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.hooks.jax.hlo_flow import HloFlow
    from bragg.record.hooks.jax.hlo_module import HloModule, Instruction
    from bragg.record.hooks.jax.hlo_places import Places

__all__ = ["jacobian_states"]

_HESSIAN = re.compile(r'op_name="[^"]*\bvmap\(jvp\((?:vmap\()?transpose\(')
_BACKWARD = re.compile(r'op_name="([^"]*/)vmap\((transpose\(jvp\()')
_SOLVES = re.compile(r'op_name="[^"]*/(?:lu|cholesky|triangular_solve|eigh?|svd)"')
_MANY_OUTPUTS = 4  # times as many as inputs


def jacobian_states(module: HloModule, flow: HloFlow, places: Places) -> dict[str, HloState]:
    """States by name of operation: of Hessians that nothing solves with, and of Jacobians with few inputs."""
    rows = [each for _, rows in module.executed() for each in rows if "vmap(" in each.line]
    backward = [(found[1], each) for each in rows if (found := _BACKWARD.search(each.line))]
    has_many = {prefix: _has_many_outputs(module, flow, prefix) for prefix in {prefix for prefix, _ in backward}}
    states = [(REVERSE_JACOBIAN, each) for prefix, each in backward if has_many[prefix]]
    hessian = [(WHOLE_HESSIAN, each) for each in rows if _HESSIAN.search(each.line)]
    if hessian and not any(_SOLVES.search(each.line) for _, rows in module.executed() for each in rows):
        states += hessian
    bases = _bases(module, places) if states else set()
    return {each.name: HloState(state, _place_of_basis(bases, places, each)) for state, each in states}


def _has_many_outputs(module: HloModule, flow: HloFlow, prefix: str) -> bool:
    """Whether a Jacobian has many more outputs than inputs; gradients of each element of a batch are none."""
    texts = [each.line for rows in module.computations.values() for each in rows]
    if any(f'"{prefix}vmap(jvp(' in text for text in texts) or not any(f'"{prefix}jvp(' in text for text in texts):
        return False
    entry = module.computations.get(module.entry, ())
    shapes = [flow.shape_of(module.entry, each.name) for each in entry if f'"{prefix}vmap(transpose(' in each.line]
    shapes = [shape for shape in shapes if len(shape) > 1]
    return bool(shapes) and shapes[-1][0] >= _MANY_OUTPUTS * prod(shapes[-1][1:])


def _bases(module: HloModule, places: Places) -> set[HloPlace]:
    """Lines at which JAX makes row and column numbers, as of the basis of a Jacobian."""
    made = (row for rows in module.computations.values() for row in rows if row.code == "iota")
    return {places.read(row.line).place for row in made if "jvp(" not in row.line}


def _place_of_basis(bases: set[HloPlace], places: Places, each: Instruction) -> HloPlace:
    """The line that asks for the Jacobian, where JAX makes its basis."""
    return next((place for place in places.stack(each.line) if place in bases), NOWHERE)
