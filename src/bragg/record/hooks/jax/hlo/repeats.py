"""What a turn of a loop, or a call of a program, computes though the last one has done so.

    new = x + noise;  x = where(f(new) > f(x), new, x)

computes f(x), which the last turn knows as f(new) or f(x). One of the two is the other with the state in place of what
becomes of it. A program may also compute something from arguments that are the same at each call; which these are is
known when it runs (`arguments.py`), so such states name them.
"""

from __future__ import annotations

from itertools import permutations

from bragg.grouping.hlo_names import EVALUATED_BEFORE, SAME_ARGUMENTS, with_arguments
from bragg.grouping.hlo_program import NOWHERE, HloState
from bragg.record.hooks.jax.hlo.graph import LONG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bragg.record.hooks.jax.hlo.graph import HloGraph, Value
    from bragg.record.hooks.jax.hlo.module import HloModule
    from bragg.record.hooks.jax.hlo.places import Places


_MOST_ALIKE, _MOST_RESULTS = 6, 16
_MOST_COMPARED = 1 << 15  # pairs of values, of one computation: 30 ms
_MOST_NAMED = 8


def repeat_states(module: HloModule, entry: HloGraph, turns: Iterable[HloGraph], places: Places) -> dict[str, HloState]:
    """States by name of operation.

    Args:
        module: The module.
        entry: Its values.
        turns: Those of the bodies of its loops.
        places: Of its operations.
    """
    names = _names_of(entry, places)
    found = _from_same_arguments(module, entry, names)
    for graph in (entry, *turns):
        for again, instead, shared in _repeated(graph):
            needed = _named(shared, names) if graph is entry else []
            executed = {each.executed for each in again} - {each.executed for each in instead}
            if needed is not None:
                state = HloState(with_arguments(EVALUATED_BEFORE, needed), places.read(again[0].made.line).place)
                found |= dict.fromkeys(module.run_by(executed), state)
    return found


def _repeated(graph: HloGraph) -> Iterator[tuple[list[Value], list[Value], int]]:
    """Values of which the next turn computes one again, that one first, and what else they depend on."""
    turns = _Turns(graph)
    for old, new in _alike(graph):
        matched, shared = turns.match(old, new)
        if matched:
            again, instead = ([pair[at] for pair in matched] for at in (0, 1))
            is_needed = _is_differentiated(old) and not _is_differentiated(new)  # for a gradient
            yield (instead, again, shared) if is_needed else (again, instead, shared)


def _names_of(entry: HloGraph, places: Places) -> dict[int, str | None]:
    """Names of arguments by bit; constants that JAX passes as arguments have none. None: it is not known."""
    names = {at: places.read(each.made.line).op_name for at, each in entry.given.items()}
    return {at: None if "/" in name else name for at, name in names.items()}


def _named(sources: int, names: dict[int, str | None]) -> list[str] | None:
    """The arguments that these are; None: they are too many, or not known."""
    found = [name for at, name in names.items() if sources >> at & 1]
    known = [name for name in found if name]
    return known if len(known) <= _MOST_NAMED and None not in found else None


def _from_same_arguments(module: HloModule, entry: HloGraph, names: dict[int, str | None]) -> dict[str, HloState]:
    """Of operations that depend on some of the arguments alone."""
    named = [name for name in names.values() if name != ""]
    if len(named) < 2:
        return {}
    sources: dict[str, int] = {}
    executed = {}
    for value in entry.values:
        name = value.executed.name
        sources[name] = sources.get(name, 0) | value.sources
        if value.made.code not in ("parameter", "constant") and value.is_large:
            executed[name] = value.executed
    found: dict[str, HloState] = {}
    for name, instruction in executed.items():
        needed = _named(sources[name], names)
        if needed and len(needed) < len(named):
            state = HloState(with_arguments(SAME_ARGUMENTS, needed), NOWHERE)
            found |= dict.fromkeys(module.run_by([instruction]), state)
    return found


def _alike(graph: HloGraph) -> Iterator[tuple[Value, Value]]:
    """Pairs of long operations that do the same."""
    kinds: dict[str, list[Value]] = {}
    for value in graph.values:
        if value.made.code in LONG and value.is_large:
            kinds.setdefault(value.kind, []).append(value)
    for same in kinds.values():
        if len(same) <= _MOST_ALIKE:
            yield from permutations(same, 2)


def _is_differentiated(value: Value) -> bool:
    """Whether a gradient needs what leads to it."""
    return "jvp(" in value.made.line


class _Turns:
    """What becomes of the state of a loop, or of the arguments of a program, in a turn.

    Args:
        graph: Of the body of the loop, or of the program.
    """

    def __init__(self, graph: HloGraph) -> None:
        self._next: dict[Value, set[Value]] = {}
        self._bits = {value: 1 << at for at, value in graph.given.items()}
        self._kept = 0
        self._left = _MOST_COMPARED
        by_shape = _by_shape(graph.results)
        for at, given in graph.given.items():
            results: Iterable[Value] = graph.results[at : at + 1] if graph.is_turn else by_shape.get(given.shape, ())
            self._next[given] = {each for result in results for each in _next_of(given, result)}
            if not graph.is_turn or [given] == list(results):
                self._kept |= 1 << at

    def match(self, old: Value, new: Value) -> tuple[list[tuple[Value, Value]], int]:
        """Values that are others with the state in place of what becomes of it, and what both depend on beside it.

        No values: it is not so.
        """
        waiting, matched = [(old, new)], []
        seen: set[tuple[Value, Value]] = set()
        shared = moved = 0
        while waiting:
            pair = one, other = waiting.pop()
            if pair in seen:
                continue
            seen.add(pair)
            self._left -= 1
            if one is other:
                shared |= one.sources
            elif one in self._next:
                if other not in self._next[one]:
                    return [], 0
                moved |= self._bits[one]
            elif len(one.operands) != len(other.operands) or one.kind != other.kind or self._left < 0:
                return [], 0
            else:
                matched.append(pair)
                waiting += zip(one.operands, other.operands, strict=True)
        is_same = moved and not shared & moved and not shared & ~self._kept
        return (matched, shared) if is_same else ([], 0)


def _by_shape(results: list[Value]) -> dict[str, list[Value]]:
    """What may be the next value of an argument of this shape; not of shapes that many have."""
    found: dict[str, list[Value]] = {}
    for each in results:
        found.setdefault(each.shape, []).append(each)
    return {shape: alike for shape, alike in found.items() if shape and len(alike) <= _MOST_RESULTS}


def _next_of(given: Value, result: Value) -> set[Value]:
    """What a state may become: all that is chosen from, if it may stay as it is."""
    chosen: set[Value] = set()
    seen: set[Value] = set()
    waiting = [result]
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.made.code == "select":
            waiting += value.operands[1:]
        else:
            chosen.add(value)
    return {result, *chosen} - {given} if given in chosen else {result}
