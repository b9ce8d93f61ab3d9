"""Loops of an HLO module whose turns are not needed for all, or not at all."""

from __future__ import annotations

import re

from bragg.grouping.hlo_names import TO_LIMIT, UNTIL_LAST
from bragg.grouping.hlo_program import HloState
from bragg.record.hooks.jax.hlo.graph import HloGraph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from bragg.record.hooks.jax.hlo.graph import Value
    from bragg.record.hooks.jax.hlo.module import HloModule, Instruction
    from bragg.record.hooks.jax.hlo.places import Places


_CONDITION = re.compile(r"\bcondition=%?([\w.-]+)")
_NUMBER, _DIRECTION = re.compile(r"constant\(([^)]*)\)"), re.compile(r"direction=(\w+)")
# Next to 1, differences between neighbouring numbers of a type.
_PRECISION = {"f64": 2.3e-16, "f32": 1.2e-7, "bf16": 7.9e-3, "f16": 9.8e-4}
_LEAST_TURNS = 8


def loop_states(module: HloModule, places: Places) -> dict[str, HloState]:
    """States by name of operation: of loops each operation in them has it."""
    found: dict[str, HloState] = {}
    for loop in _batched_loops(module, places):
        state = HloState(UNTIL_LAST, places.read(loop.line).place)
        found |= dict.fromkeys(_run_by(module, loop), state)
    for loop, limit in _limited_loops(module):
        state = HloState(f"{TO_LIMIT} {limit}", places.read(loop.line).place)
        found |= dict.fromkeys(module.run_by([loop]), state)
    return found


def _batched_loops(module: HloModule, places: Places) -> Iterator[Instruction]:
    """Loops under `vmap`: JAX keeps what has ended by a choice that is called like the loop."""
    loops = {places.read(each.line).op_name: each for _, each in module.callers.values() if each.code == "while"}
    if loops:
        selects = (each for rows in module.computations.values() for each in rows if each.code == "select")
        names = {places.read(each.line).op_name for each in selects}
        yield from (loops[name] for name in names if name and name in loops)


def _limited_loops(module: HloModule) -> Iterator[tuple[Instruction, int]]:
    """Loops that end by a tolerance that their numbers cannot tell from 0 beside 1, or after so many turns."""
    for _, loop in module.callers.values():
        told = _CONDITION.search(loop.line) if loop.code == "while" else None
        root = next(iter(HloGraph(module, told[1]).results), None) if told else None
        if root is not None and root.made.code == "and":
            bounds = [_bound(each) for each in root.operands]
            limits = [int(number) for type_, number in bounds if type_.startswith("s") and number >= _LEAST_TURNS]
            is_exact = any(0 < number < _PRECISION.get(type_, 0) for type_, number in bounds)
            if is_exact and len(limits) == 1:
                yield loop, limits[0]


def _bound(compared: Value) -> tuple[str, float]:
    """Type and constant of a comparison of a part of a loop's state with it: `x > constant`, or `<` of a counter."""
    sides = compared.operands if compared.made.code == "compare" else []
    constants = [each for each in sides if each.made.code == "constant"]
    others = [each for each in sides if each not in constants and each.made.code == "parameter"]
    direction = _DIRECTION.search(compared.made.line)
    number = _NUMBER.search(constants[0].made.line) if len(constants) == len(others) == 1 else None
    if number is None or direction is None:
        return "", 0.0
    type_ = constants[0].made.type
    is_upper = direction[1][0] == ("L" if sides[1] is constants[0] else "G")
    return (type_, float(number[1])) if is_upper == type_.startswith("s") else ("", 0.0)


def _run_by(module: HloModule, each: Instruction) -> list[str]:
    """Names of an operation, and of those in it if it is a loop."""
    inside = module.computations.get(each.called, []) if each.code == "while" else []
    return [each.name, *(row.name for row in inside)]
