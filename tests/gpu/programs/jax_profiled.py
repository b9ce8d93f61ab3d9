"""A program that profiles a part of itself with JAX's profiler."""

import tempfile

import jax
import jax.numpy as jnp


@jax.jit
def before(x: jax.Array) -> jax.Array:
    return jnp.tanh(x)


@jax.jit
def after(x: jax.Array) -> jax.Array:
    return jnp.sin(x)


x = jnp.ones((128, 256))
jax.block_until_ready([before(x) for _ in range(10)])
with tempfile.TemporaryDirectory() as directory, jax.profiler.trace(directory):
    jax.block_until_ready(x * 3)
jax.block_until_ready([after(x) for _ in range(10)])
