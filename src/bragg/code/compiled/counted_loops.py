"""Loops that count by `while`, read as the `for` that they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bragg.code.compiled.operations import Module, Operation

_BELOW = re.compile(r" = arith\.cmpi [su]lt,")


@dataclass(frozen=True)
class _Counter:
    """What a loop counts by.

    Attributes:
        name: Of its counter.
        end: What it stays below.
        step: What each turn adds.
        rows: Of the comparison, of the condition and of the end of a turn.
    """

    name: str
    end: str
    step: str
    rows: tuple[int, int, int]


def with_counted_loops(module: Module) -> Module:
    """A module whose `scf.while` that only count up to a bound are `scf.for`, without their comparison.

    Args:
        module: Of TTIR.
    """
    operations, left_out = list(module.operations), set[int]()
    for row, loop in enumerate(module.operations):
        counter = _counter(module.operations, row) if loop.name == "scf.while" else None
        if counter is None:
            continue
        at = list(loop.block).index(counter.name)
        others = {inside: outside for inside, outside in loop.block.items() if inside != counter.name}
        carried = [name for pair in others.items() for name in pair]
        operations[row] = replace(
            loop,
            name="scf.for",
            results=_without(loop.results, at),
            operands=(counter.name, loop.block[counter.name], counter.end, counter.step, *carried),
        )
        compared, condition, end = counter.rows
        operations[end] = replace(operations[end], operands=_without(operations[end].operands, at))
        left_out |= {compared, condition}
    return replace(module, operations=_numbered_anew(operations, left_out)) if left_out else module


def _counter(operations: Sequence[Operation], row: int) -> _Counter | None:
    """What a `while` counts by; None: it does something else."""
    inside = {at: each for at, each in enumerate(operations) if each.loop == row and not each.branches}
    made_by = {name: at for at, each in inside.items() for name in each.results}
    carried = operations[row].block
    condition = next((at for at, each in inside.items() if each.name == "scf.condition"), -1)
    end = max((at for at, each in inside.items() if each.name == "scf.yield"), default=-1)
    if condition < 0 or end < 0 or inside[condition].operands[1:] != tuple(carried):
        return None
    compared = made_by.get(inside[condition].operands[0], -1)
    if compared < 0 or not _BELOW.search(inside[compared].text):
        return None
    counter, limit = inside[compared].operands
    if counter not in carried or limit in carried or limit in made_by:
        return None
    added = inside.get(made_by.get(inside[end].operands[list(carried).index(counter)], -1))
    steps = [name for name in added.operands if name != counter] if added and added.name == "arith.addi" else []
    if len(steps) != 1 or steps[0] in carried or steps[0] in made_by:
        return None
    return _Counter(counter, limit, steps[0], (compared, condition, end))


def _without(names: tuple[str, ...], at: int) -> tuple[str, ...]:
    return names[:at] + names[at + 1 :]


def _numbered_anew(operations: Sequence[Operation], left_out: set[int]) -> list[Operation]:
    kept = [row for row in range(len(operations)) if row not in left_out]
    rows = {-1: -1} | {row: at for at, row in enumerate(kept)}
    return [replace(operations[row], loop=rows[operations[row].loop]) for row in kept]
