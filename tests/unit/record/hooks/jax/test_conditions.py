from __future__ import annotations

from types import ModuleType

import pytest

from bragg.grouping.hlo_names import BOTH_BRANCHES
from bragg.record.hooks.jax import conditions
from bragg.record.hooks.jax.hlo.text import operations_in

jax = pytest.importorskip("jax")


def states_of(per_element: bool) -> set[tuple[str, int]]:
    """Of a program whose condition depends on the element of a batch, or on nothing of it."""
    first = states_of.__code__.co_firstlineno

    def turned(is_up: object, x: object) -> object:
        return jax.lax.cond(is_up, lambda x: x @ x, lambda x: x, x)

    x, flags = jax.numpy.ones((4, 8, 8)), jax.numpy.ones(4, bool)
    mapped = jax.jit(jax.vmap(turned, in_axes=(0 if per_element else None, 0)))
    text = mapped.lower(flags if per_element else flags[0], x).compile().as_text()
    states = {each.state for each in operations_in(text, lambda file: file != __file__).values()}
    return {(state.name, state.place.line - first) for state in states if state.name}


def test_both_branches_of_a_condition_under_vmap_are_told_at_its_line() -> None:
    import jax._src.lax.control_flow.conditionals as conditionals

    undo = conditions.mark_batched_conditions(conditionals)
    assert undo is not None
    try:
        assert states_of(per_element=True) == {(BOTH_BRANCHES, 5)}
        assert states_of(per_element=False) == set()
    finally:
        undo()
    assert states_of(per_element=True) == set()


def test_a_jax_that_batches_otherwise_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    monkeypatch.setattr(conditions, "note", notes.append)
    assert conditions.mark_batched_conditions(ModuleType("conditionals")) is None
    assert "cond under vmap" in notes[0]
