"""Loops that a state runs through, of programs that XLA compiles for a CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bragg.grouping.hlo_names import LINEAR_TURNS
from bragg.record.hooks.jax.hlo.text import operations_in

jax = pytest.importorskip("jax")
jnp = jax.numpy


def is_told(turn: Callable[..., Any]) -> bool:
    def run(decay: Any, x: Any) -> Any:
        return jax.lax.scan(turn, jnp.zeros(128), (decay, x))[1]

    text = jax.jit(run).lower(jnp.zeros((256, 128)), jnp.zeros((256, 128))).compile().as_text()
    states = [each.state for each in operations_in(text, lambda file: file != __file__).values()]
    lines = {each.place.line - run.__code__.co_firstlineno for each in states if each.name == LINEAR_TURNS}
    assert lines <= {1}
    return bool(lines)


def smoothed(h: Any, each: Any) -> Any:
    h = each[0] * h + (1 - each[0]) * each[1]
    return h, h


def reset(h: Any, each: Any) -> Any:
    h = jnp.where(each[0] > 0.5, 0.0, h + each[1] / 3)
    return h, jnp.tanh(h)


def squared(h: Any, each: Any) -> Any:
    h = each[0] * h * h + each[1]
    return h, h


def gated(h: Any, each: Any) -> Any:
    h = jax.nn.sigmoid(h) * h + each[1]
    return h, h


def mixed(h: Any, each: Any) -> Any:
    h = each[0] * h[::-1] + each[1]
    return h, h


@pytest.mark.parametrize(
    ("turn", "expected"), [(smoothed, True), (reset, True), (squared, False), (gated, False), (mixed, False)]
)
def test_a_state_times_a_number_plus_a_number_is_told_at_the_loop(turn: Callable[..., Any], expected: bool) -> None:
    assert is_told(turn) is expected
