"""Sums over neighbours, of programs that XLA compiles for a CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bragg.grouping.hlo_names import LATE_PROJECTION
from bragg.record.hooks.jax.hlo.text import operations_in

jax = pytest.importorskip("jax")
jnp = jax.numpy
NODES, EDGES = 512, 4096


def told(function: Callable[..., Any]) -> tuple[set[str], set[int]]:
    """Primitives, and how many lines behind the first line of the function their cause is."""
    ends = jnp.zeros(EDGES, "int32")
    given = [jnp.zeros((NODES, 64)), jnp.zeros((64, 16)), ends, ends, jnp.zeros(EDGES)]
    text = jax.jit(function).lower(*given).compile().as_text()
    found = operations_in(text, lambda file: file != __file__).values()
    states = [each for each in found if each.state.name == LATE_PROJECTION]
    first = function.__code__.co_firstlineno
    primitives = {each.op_name.rpartition("/")[2] for each in states}
    return primitives & {"scatter-add"}, {each.state.place.line - first for each in states}


def neighbours(h: Any, source: Any, target: Any, weight: Any) -> Any:
    return jax.ops.segment_sum(h[source] * weight[:, None], target, num_segments=NODES)


def late(h: Any, w: Any, source: Any, target: Any, weight: Any) -> Any:
    return jax.nn.relu(neighbours(h, source, target, weight) @ w)


def late_mean(h: Any, w: Any, source: Any, target: Any, weight: Any) -> Any:
    degree = jax.ops.segment_sum(weight, target, num_segments=NODES)
    total = jnp.zeros((NODES, 64)).at[target].add(h[source])
    return (total / degree[:, None]) @ w


def early(h: Any, w: Any, source: Any, target: Any, weight: Any) -> Any:
    return jax.nn.relu(neighbours(h @ w, source, target, weight))


def nonlinear(h: Any, w: Any, source: Any, target: Any, weight: Any) -> Any:
    return jax.nn.relu(neighbours(h, source, target, weight)) @ w


def wider(h: Any, w: Any, source: Any, target: Any, weight: Any) -> Any:
    return neighbours(h[:, :8], source, target, weight) @ w[:8]


def used_otherwise(h: Any, w: Any, source: Any, target: Any, weight: Any) -> Any:
    total = neighbours(h, source, target, weight)
    return total @ w, jnp.tanh(total)


@pytest.mark.parametrize(
    ("function", "line"),
    [(late, 1), (late_mean, 3), (early, None), (nonlinear, None), (wider, None), (used_otherwise, None)],
)
def test_sums_over_neighbours_that_are_narrower_afterwards_are_told_at_the_product(
    function: Callable[..., Any], line: int | None
) -> None:
    assert told(function) == (set() if line is None else {"scatter-add"}, set() if line is None else {line})
