"""Loops and other long operations of an HLO module whose results are not needed for all, or not at all."""

from __future__ import annotations

import re

from bragg.grouping.hlo_names import BOTH_BRANCHES, UNTIL_LAST
from bragg.grouping.hlo_program import HloState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from bragg.record.hooks.jax.hlo.flow import HloFlow
    from bragg.record.hooks.jax.hlo.module import HloModule, Instruction
    from bragg.record.hooks.jax.hlo.places import Places

__all__ = ["loop_states"]

_WHERE = re.compile(r"\bjit\(_?where\)")
_LONG = frozenset({"while", "dot", "sort", "fft", "convolution", "custom-call"})


def loop_states(module: HloModule, flow: HloFlow, places: Places) -> dict[str, HloState]:
    """States by name of operation: of loops each operation in them has it."""
    found: dict[str, HloState] = {}
    for loop in _batched_loops(module, places):
        state = HloState(UNTIL_LAST, places.read(loop.line).place)
        found |= dict.fromkeys(_run_by(module, loop), state)
    for each, choice in _chosen_whole(module, flow):
        state = HloState(BOTH_BRANCHES, places.read(choice.line).place)
        found |= dict.fromkeys(_run_by(module, each), state)
    return found


def _batched_loops(module: HloModule, places: Places) -> Iterator[Instruction]:
    """Loops under `vmap`: JAX keeps what has ended by a choice that is called like the loop."""
    loops = {places.read(each.line).op_name: each for _, each in module.callers.values() if each.code == "while"}
    if loops:
        selects = (each for rows in module.computations.values() for each in rows if each.code == "select")
        names = {places.read(each.line).op_name for each in selects}
        yield from (loops[name] for name in names if name and name in loops)


def _chosen_whole(module: HloModule, flow: HloFlow) -> Iterator[tuple[Instruction, Instruction]]:
    """Long operations whose result `where` takes or not by one number, each with that choice."""
    for computation, rows in module.executed():
        for each in rows:
            uses = flow.uses(computation, each, ("select",)) if each.code in _LONG else []
            if len(uses) == 1 and _WHERE.search(uses[0].line):
                home = flow.computation_of(uses[0])
                condition = flow.made(home, uses[0].operand)
                is_one = condition is None or condition.code == "broadcast"
                name = condition.operand if condition and is_one else uses[0].operand
                if is_one and not flow.shape_of(home, name):
                    yield each, uses[0]


def _run_by(module: HloModule, each: Instruction) -> list[str]:
    """Names of an operation, and of those in it if it is a loop."""
    inside = module.computations.get(each.called, []) if each.code == "while" else []
    return [each.name, *(row.name for row in inside)]
