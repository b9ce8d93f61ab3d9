"""What turns and calls compute again, of programs that JAX compiles for the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bragg.grouping.hlo_names import EVALUATED_BEFORE, SAME_ARGUMENTS, arguments_of
from bragg.record.hooks.jax.hlo.text import operations_in

jax = pytest.importorskip("jax")
ROWS, STATE = (128, 64), (64, 64)


def energy(q: Any, x: Any) -> Any:
    return jax.numpy.logaddexp(0.0, x @ q).sum(0)


def metropolis(q: Any, noise: Any, x: Any) -> Any:
    trial = q + noise
    keeps = energy(trial, x) < energy(q, x)
    return jax.numpy.where(keeps, trial, q)


def carried(state: Any, noise: Any, x: Any) -> Any:
    q, known = state
    trial = q + noise
    value = energy(trial, x)
    keeps = value < known
    return jax.numpy.where(keeps, trial, q), jax.numpy.where(keeps, value, known)


def chain(q: Any, noise: Any, x: Any) -> Any:
    return jax.lax.scan(lambda q, _: (metropolis(q, noise, x), None), q, length=5)[0]


def shifted_chain(q: Any, noise: Any, x: Any) -> Any:
    def turn(state: Any, _: Any) -> Any:
        q, x = state
        return (metropolis(q, noise, x), x + 1.0), None

    return jax.lax.scan(turn, (q, x), length=5)[0]


def carried_chain(q: Any, noise: Any, x: Any) -> Any:
    return jax.lax.scan(lambda state, _: (carried(state, noise, x), None), (q, energy(q, x)), length=5)[0]


def leapfrog(q: Any, noise: Any, x: Any) -> Any:
    slope = jax.grad(lambda q: energy(q, x).sum())
    p = noise - 0.1 * slope(q)
    q = q + 0.1 * p
    return q, p - 0.1 * slope(q)


def loss_after(q: Any, noise: Any, x: Any) -> Any:
    q = q - jax.grad(lambda q: energy(q, x).sum())(q)
    return q, energy(q, x)


def two_batches(q: Any, noise: Any, x: Any) -> Any:
    return energy(q, x) - energy(q + noise, x)


def told(step: Callable[..., Any], state: str) -> list[tuple[int, frozenset[str]]]:
    """Lines and arguments of the products that have a state."""
    given = (jax.numpy.ones(STATE), jax.numpy.ones(STATE), jax.numpy.ones(ROWS))
    text = jax.jit(step).lower(*given).compile().as_text()
    found = [each for each in operations_in(text, lambda file: file != __file__).values() if "dot" in each.op_name]
    return [
        (each.state.place.line - step.__code__.co_firstlineno, arguments_of(each.state.name))
        for each in found
        if each.state.name.startswith(state)
    ]


@pytest.mark.parametrize(
    ("step", "needed"),
    [(chain, []), (metropolis, ["x"]), (leapfrog, ["x"]), (loss_after, ["x"])],
)
def test_a_function_of_the_state_that_the_last_turn_has_evaluated_is_told(
    step: Callable[..., Any], needed: list[str]
) -> None:
    assert {arguments for _, arguments in told(step, EVALUATED_BEFORE)} == {frozenset(needed)}


@pytest.mark.parametrize("step", [carried_chain, shifted_chain, two_batches])
def test_a_function_of_something_else_is_not(step: Callable[..., Any]) -> None:
    assert told(step, EVALUATED_BEFORE) == []


def test_work_on_some_arguments_alone_names_them() -> None:
    def weighted(q: Any, noise: Any, x: Any) -> Any:
        return (x @ x.T) @ x @ (q + noise)

    assert frozenset({"x"}) in {arguments for _, arguments in told(weighted, SAME_ARGUMENTS)}
    assert frozenset({"q", "noise", "x"}) not in {arguments for _, arguments in told(weighted, SAME_ARGUMENTS)}
