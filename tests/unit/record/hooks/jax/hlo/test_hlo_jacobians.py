"""Derivatives as a whole, of programs that JAX compiles for the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bragg.grouping.hlo_names import FORWARD_JACOBIAN, REVERSE_JACOBIAN, WHOLE_HESSIAN, WHOLE_JACOBIAN
from bragg.record.hooks.jax.hlo.text import operations_in

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.usefixtures("marked_jacobians")


def loss(w: Any) -> Any:
    return jax.numpy.tanh(jax.numpy.outer(w, w) @ w).sum()


def curve(p: Any) -> Any:
    return jax.numpy.tanh(jax.numpy.outer(jax.numpy.arange(64.0), p) @ p)


def wave(w: Any) -> Any:
    return jax.numpy.tanh(jax.numpy.outer(jax.numpy.arange(64.0), w) @ w)


def newton(w: Any, v: Any) -> Any:
    return jax.numpy.linalg.solve(jax.hessian(loss)(w), v)


@pytest.mark.parametrize(
    ("derive", "state"),
    [
        (lambda w, v: jax.hessian(loss)(w) @ v, WHOLE_HESSIAN),
        (lambda w, v: jax.jvp(jax.grad(loss), (w,), (v,))[1], ""),
        (newton, ""),
        (lambda w, _: jax.jacrev(curve)(w[:3]), REVERSE_JACOBIAN),
        (lambda w, _: jax.jacfwd(curve)(w[:3]), ""),
        (lambda w, v: jax.vmap(lambda p: jax.jacrev(curve)(p))(jax.numpy.outer(v, w[:3])), REVERSE_JACOBIAN),
        (
            lambda w, _: jax.lax.scan(lambda p, _: (p - jax.jacrev(curve)(p).sum(0), None), w[:3], length=3),
            REVERSE_JACOBIAN,
        ),
        (lambda w, _: jax.jacfwd(loss)(w), FORWARD_JACOBIAN),
        (lambda w, _: jax.jacrev(loss)(w), ""),
        (lambda w, _: jax.jacrev(lambda w: w[:2] * w.sum())(w), ""),  # few outputs
        (lambda w, v: jax.jacfwd(wave)(w) @ v, WHOLE_JACOBIAN),
        (lambda w, v: jax.numpy.einsum("ij,j->i", jax.jacrev(wave)(w), v), WHOLE_JACOBIAN),
        (lambda w, _: (j := jax.jacrev(wave)(w)).T @ (wave(w) + j.T[0]), ""),  # a column, too
        (lambda w, v: jax.vmap(lambda w: jax.jacfwd(wave)(w) @ v)(jax.numpy.outer(v, w)), WHOLE_JACOBIAN),
        (
            lambda w, _: jax.lax.scan(lambda p, _: (p + (j := jax.jacfwd(wave)(w)).T @ (j @ p), None), w, length=3),
            WHOLE_JACOBIAN,  # XLA takes it out of the loop
        ),
        (lambda w, v: jax.numpy.linalg.solve((j := jax.jacfwd(wave)(w)).T @ j, j.T @ wave(w)), ""),
        (lambda w, v: jax.jacfwd(wave)(w) @ jax.numpy.outer(v, w), ""),  # as many vectors as inputs
        (lambda w, v: (jax.jacfwd(wave)(w), jax.jacfwd(wave)(w) @ v), ""),
        (lambda w, v: jax.vmap(jax.grad(lambda w, x: loss(w * x)), (None, 0))(w[:3], v), ""),  # of each element
    ],
)
def test_derivatives_that_take_more_passes_than_needed_are_told_where_they_are_asked_for(
    derive: Callable[[Any, Any], Any], state: str
) -> None:
    w = jax.numpy.ones(32)
    text = jax.jit(derive).lower(w, w).compile().as_text()
    states = {each.state for each in operations_in(text, lambda file: file != __file__).values()}
    told = {
        each.name: each.place.line
        for each in states
        if each.name in (FORWARD_JACOBIAN, REVERSE_JACOBIAN, WHOLE_HESSIAN, WHOLE_JACOBIAN)
    }
    assert told == ({state: derive.__code__.co_firstlineno} if state else {})
