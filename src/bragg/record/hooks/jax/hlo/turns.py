"""Loops of an HLO module whose turns do not need each other (they keep an output, or add to a sum), or do the same."""

from __future__ import annotations

from bragg.grouping.hlo_names import INDEPENDENT_TURNS, SAME_TURNS
from bragg.grouping.hlo_program import HloState
from bragg.record.hooks.jax.hlo.graph import LONG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.hooks.jax.hlo.graph import HloGraph, Value
    from bragg.record.hooks.jax.hlo.module import HloModule
    from bragg.record.hooks.jax.hlo.places import Places

__all__ = ["turn_states"]


def turn_states(module: HloModule, turns: list[HloGraph], places: Places) -> dict[str, HloState]:
    """States by name of operation, at the line of the loop; of loops in each other the outer one counts."""
    found: dict[str, HloState] = {}
    for graph in turns:
        changing = sum(1 << at for at, each in enumerate(graph.results) if each is not graph.given.get(at))
        same = {
            each for each in graph.values if each.made.code in LONG and each.is_large and not each.sources & changing
        }
        for each in same:
            state = HloState(SAME_TURNS, places.read(each.made.line).place)
            found |= dict.fromkeys(module.run_by([each.executed]), state)
        if _are_independent(graph):
            _, loop = module.callers[graph.computation]
            state = HloState(INDEPENDENT_TURNS, places.read(loop.line).place)
            inside = module.run_by(module.computations[graph.computation])
            found = (
                {**dict.fromkeys(inside, state), **found}
                if found.get(loop.name)
                else found | dict.fromkeys(inside, state)
            )
    return found


def _are_independent(graph: HloGraph) -> bool:
    results = dict(enumerate(graph.results))
    changing = {at: result for at, result in results.items() if result is not graph.given.get(at)}
    counters = {at for at, result in changing.items() if _is_counted(graph.given.get(at), result)}
    others = sum(1 << at for at in changing if at not in counters)
    kept = [at for at in changing if at not in counters]
    return bool(kept and counters) and all(_is_of_turn(graph.given.get(at), changing[at], others) for at in kept)


def _is_counted(given: Value | None, result: Value) -> bool:
    """Whether it becomes one more in each turn."""
    return (
        given is not None and result.made.code == "add" and given in result.operands and result.sources == given.sources
    )


def _is_of_turn(given: Value | None, result: Value, others: int) -> bool:
    """Whether what a turn writes to an array, or adds to it, depends on no other turn."""
    if given is None:
        return not result.sources & others
    result = result.plain
    if result.made.code not in ("dynamic-update-slice", "add") or given not in [each.plain for each in result.operands]:
        return False
    return not any(each.sources & others for each in result.operands if each.plain is not given)
