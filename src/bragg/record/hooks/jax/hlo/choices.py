"""What an HLO module computes though one number decides whether it is used.

where(stale, neighbours(x), old)              the neighbours are computed each time
where(step % 100 == 0, evaluate(x), 0.0)      so is the evaluation
"""

from __future__ import annotations

from bragg.grouping.hlo_names import BOTH_BRANCHES
from bragg.grouping.hlo_program import HloState
from bragg.record.hooks.jax.hlo.graph import LONG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from bragg.record.hooks.jax.hlo.graph import HloGraph, Value
    from bragg.record.hooks.jax.hlo.module import HloModule, Instruction
    from bragg.record.hooks.jax.hlo.places import Places

    Choice = tuple[Hashable, int]  # the number, and which operand of the selection
    Made = tuple[Instruction, Instruction]  # what makes a value, and what is executed


_SOURCES = frozenset({"constant", "parameter", "iota", "tuple"})
_MOST_DEPTH = 8
_NONE: frozenset[Choice] = frozenset()


def choice_states(module: HloModule, graph: HloGraph, places: Places) -> dict[str, HloState]:
    """States by name of operation, of long work that some choices alone use, and of what leads to it."""
    choices = {each: dict(_choices(each)) for each in graph.values if each.made.code == "select"}
    choices = {select: sides for select, sides in choices.items() if sides}
    if not choices:
        return {}
    needed = _needed_by(graph, choices)
    by_choice = _executed_by(graph, needed)
    long = {each.executed for each in graph.values if each.made.code == "while" or _is_long(each)}
    found: dict[str, HloState] = {}
    for select, sides in choices.items():
        for side, choice in sides.items():
            taken = select.operands[side]
            executed = by_choice.get(choice, []) if choice in needed.get((taken.made, taken.executed), ()) else []
            if not long.isdisjoint(executed):
                state = HloState(BOTH_BRANCHES, places.nearest([select.made.line, select.executed.line]))
                found |= dict.fromkeys(module.run_by(executed), state)
    return found


def _is_long(value: Value) -> bool:
    return value.made.code in LONG and value.is_large


def _choices(select: Value) -> Iterator[tuple[int, Choice]]:
    """What a selection by one number takes or drops, by operand."""
    if len(select.operands) != 3:
        return
    number = select.operands[0]
    while number.made.code in ("broadcast", "reshape") and number.operands:
        number = number.operands[0]
    if number.sizes or _asks_whether_finite(number):
        return
    is_of_numbers = _is_of_numbers(number)
    for side in (1, 2):
        # A mean is 0 where there is nothing to average: that hardly ever happens.
        if is_of_numbers or not _is_constant(select.operands[3 - side]):
            yield side, (_same(number), side)


def _needed_by(graph: HloGraph, choices: dict[Value, dict[int, Choice]]) -> dict[Made, frozenset[Choice]]:
    """By value, or tuple of values: the choices without which it is not needed."""
    found: dict[Made, frozenset[Choice]] = {}
    for value in reversed(graph.values):
        uses: list[frozenset[Choice]] = []
        for user in graph.users(value):
            sides = [at for at, each in enumerate(user.operands) if each.made is value.made]
            choice = choices.get(user, {}).get(sides[0]) if len(sides) == 1 else None
            uses.append(found[user.made, user.executed] | ({choice} if choice else _NONE))
        found[value.made, value.executed] = frozenset.intersection(*uses) if uses else _NONE
    return found


def _executed_by(graph: HloGraph, needed: dict[Made, frozenset[Choice]]) -> dict[Choice, list[Instruction]]:
    """Instructions of which nothing else is needed."""
    found: dict[Instruction, frozenset[Choice]] = {}
    for value in graph.values:
        if value.made.code not in _SOURCES:
            only = needed[value.made, value.executed]
            found[value.executed] = only & found.get(value.executed, only)
    by_choice: dict[Choice, list[Instruction]] = {}
    for executed, only in found.items():
        for choice in only:
            by_choice.setdefault(choice, []).append(executed)
    return by_choice


def _same(number: Value, depth: int = _MOST_DEPTH) -> Hashable:
    """The same for numbers that are computed in the same way, once for each of what they are fused with."""
    if number.sizes or not depth or number.made.code in ("parameter", "reduce"):
        return number
    return (number.kind, *(_same(each, depth - 1) for each in number.operands))


def _is_of_numbers(value: Value, depth: int = _MOST_DEPTH) -> bool:
    """Whether it is computed from single numbers alone, as a step's number."""
    return depth > 0 and not value.sizes and all(_is_of_numbers(each, depth - 1) for each in value.operands)


def _is_constant(value: Value) -> bool:
    while value.made.code == "broadcast" and value.operands:
        value = value.operands[0]
    return value.made.code == "constant"


def _asks_whether_finite(value: Value, depth: int = _MOST_DEPTH) -> bool:
    is_asked = value.made.code == "is-finite" or "is-finite" in value.codes
    return is_asked or (depth > 0 and any(_asks_whether_finite(each, depth - 1) for each in value.operands))
