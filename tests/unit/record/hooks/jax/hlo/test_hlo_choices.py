"""Work whose result one number takes or drops, of programs that XLA compiles for a CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bragg.grouping.hlo_names import BOTH_BRANCHES
from bragg.record.hooks.jax.hlo.text import operations_in

jax = pytest.importorskip("jax")
jnp = jax.numpy
POINTS = (512, 64)


def chosen(function: Callable[..., Any]) -> tuple[bool, set[int]]:
    """Whether products are told, and how many lines behind the first line of the function all that is told is."""
    given = [jnp.zeros(POINTS), jnp.zeros(POINTS), jnp.zeros((), "int32")]
    text = jax.jit(function).lower(*given).compile().as_text()
    operations = operations_in(text, lambda file: file != __file__).values()
    told = [each for each in operations if each.state.name == BOTH_BRANCHES]
    lines = {each.state.place.line - function.__code__.co_firstlineno for each in told}
    return any("dot_general" in each.op_name for each in told), lines


def neighbours(x: Any) -> Any:
    return jnp.tanh(jnp.sort(jnp.tanh(x @ x.T), axis=1) @ x)


def rebuilt(x: Any, old: Any, step: Any) -> Any:
    stale = jnp.max(jnp.abs(x - old)) > 0.1
    new = jnp.where(stale, neighbours(x), old)
    return jnp.sin(new), jnp.where(stale, x, old)


def rebuilt_tree(x: Any, old: Any, step: Any) -> Any:
    new = {"near": neighbours(x), "far": neighbours(x)[:, ::-1]}
    return jax.tree.map(lambda one, other: jnp.where(step % 20 == 0, one, other), new, {"near": old, "far": old + 1})


def evaluated_at_times(x: Any, old: Any, step: Any) -> Any:
    return old + 1, jnp.where(step % 20 == 0, neighbours(x).sum(), 0.0)


def in_turns(x: Any, old: Any, step: Any) -> Any:
    def turn(state: Any, i: Any) -> Any:
        return jnp.where(i % 8 == 0, neighbours(x + state), state + 1), None

    return jax.lax.scan(turn, old, jnp.arange(64))[0]


def by_cond(x: Any, old: Any, step: Any) -> Any:
    return jax.lax.cond(step % 20 == 0, lambda: neighbours(x), lambda: old)


def accepted(x: Any, old: Any, step: Any) -> Any:
    new = neighbours(x)
    return jnp.where(new.sum() > 1, new, old)


def used_otherwise(x: Any, old: Any, step: Any) -> Any:
    new = neighbours(x)
    return jnp.where(step % 20 == 0, new, old), new.sum()


def guarded_mean(x: Any, old: Any, step: Any) -> Any:
    mask = old > 0
    return jnp.where(mask.sum() > 0, jnp.where(mask, neighbours(x), 0).sum() / mask.sum(), 0.0)


def by_element(x: Any, old: Any, step: Any) -> Any:
    return jnp.where(old > 0, neighbours(x), old)


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (rebuilt, 2),
        (rebuilt_tree, 2),
        (evaluated_at_times, 1),
        (in_turns, 2),
        (by_cond, None),
        (accepted, None),
        (used_otherwise, None),
        (guarded_mean, None),
        (by_element, None),
    ],
)
def test_what_one_number_takes_or_drops_is_told_where_it_chooses(
    function: Callable[..., Any], line: int | None
) -> None:
    assert chosen(function) == (line is not None, set() if line is None else {line})
