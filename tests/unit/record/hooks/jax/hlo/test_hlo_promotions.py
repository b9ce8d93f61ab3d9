"""Products in 32 bits of 16-bit values, of programs as JAX hands them to XLA: a CPU has no products of 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bragg.grouping.hlo_names import PROMOTED
from bragg.record.hooks.jax.hlo.text import operations_in

jax = pytest.importorskip("jax")
jnp = jax.numpy
TABLE, HALF = jax.numpy.linspace(0, 1, 64 * 128).reshape(64, 128), "bfloat16"
X, W = jax.ShapeDtypeStruct((64, 128), HALF), jax.ShapeDtypeStruct((128, 128), HALF)


def promoted(function: Callable[..., Any], *given: Any) -> tuple[int, set[int]]:
    """How many products are told, and how many lines behind the first line of the function their cause is."""
    module = jax.jit(function).lower(*given).compiler_ir(dialect="hlo").as_hlo_module()
    told = [
        each.state
        for each in operations_in(module.to_string(), lambda file: file != __file__).values()
        if each.state.name == PROMOTED
    ]
    return len(told), {each.place.line - function.__code__.co_firstlineno for each in told}


def by_table(x: Any, w1: Any, w2: Any) -> Any:
    h = x @ w1
    h = h * TABLE
    h = jax.nn.relu(h @ w1)
    return (h @ h.T) @ (h @ w2)


def by_number(x: Any, w1: Any, w2: Any) -> Any:
    h = x * np.sqrt(128)
    return jax.nn.relu(h @ w1) @ w2


def by_few_numbers(x: Any, w1: Any, w2: Any) -> Any:
    h = x.reshape(64, 64, 2)
    h = (h - np.array([0.4, 0.6], "float32")).reshape(x.shape)
    return jax.nn.relu(h @ w1) @ w2


def by_own_number(x: Any, w1: Any, w2: Any) -> Any:
    return jax.nn.relu((x * 128**0.5) @ w1) @ w2


def meant(x: Any, w1: Any, w2: Any) -> Any:
    wide = x.astype("float32")
    wide = wide * 0.5
    return jax.nn.relu(wide @ w1) @ w2


def cast_back(x: Any, w1: Any, w2: Any) -> Any:
    h = ((x @ w1) * TABLE).astype(x.dtype)
    return jax.nn.relu(h @ w1) @ w2


def normalized(x: Any, w1: Any, w2: Any) -> Any:
    wide = x.astype(jnp.float32)
    x = (wide / jnp.sqrt(jnp.square(wide).mean(1, keepdims=True) + 1e-6)).astype(x.dtype)
    return jax.nn.relu(x @ w1) @ w2


def exact_head(x: Any, w1: Any, w2: Any) -> Any:
    h = (x @ w1) * TABLE
    return h @ w2.astype(jnp.float32)


def scanned(x: Any, w1: Any, w2: Any) -> Any:
    def layer(h: Any, table: Any) -> Any:
        return ((h * table) @ w1 @ w2).astype(h.dtype), None

    return jax.lax.scan(layer, x, jnp.stack([TABLE, TABLE]))[0]


@pytest.mark.parametrize(
    ("function", "count", "line"),
    [
        (by_table, 4, 2),
        (by_number, 2, 1),
        (by_few_numbers, 2, 2),
        (scanned, 1, 2),
        (by_own_number, 0, 0),
        (meant, 0, 0),
        (cast_back, 0, 0),
        (normalized, 0, 0),
        (exact_head, 0, 0),
    ],
)
def test_products_behind_an_array_or_number_of_32_bits_are_told_where_it_is_met(
    function: Callable[..., Any], count: int, line: int
) -> None:
    assert promoted(function, X, W, W) == (count, {line} if count else set())


def test_inputs_of_32_bits_are_told_at_the_first_product() -> None:
    def layers(x: Any, w1: Any, w2: Any) -> Any:
        h = jax.nn.relu(x @ w1)
        return h @ w2

    x = jax.ShapeDtypeStruct(X.shape, "float32")
    assert promoted(layers, x, W, W) == (2, {1})
    assert promoted(layers, X, W, W) == (0, set())
    wide = jax.ShapeDtypeStruct(W.shape, "float32")
    assert promoted(layers, x, wide, wide) == (0, set())


def test_what_a_loss_of_32_bits_differentiates_is_fine() -> None:
    def gradients(x: Any, w1: Any, w2: Any) -> Any:
        def loss(weights: Any) -> Any:
            h = jax.nn.relu(x @ weights[0]) @ weights[1]
            return jnp.square(h.astype(jnp.float32) - TABLE).mean()

        return jax.grad(loss)((w1, w2))

    assert promoted(gradients, X, W, W) == (0, set())
