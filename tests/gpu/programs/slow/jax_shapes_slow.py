"""Compiles its step for each length of batch."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(weights, rows):
    """One step."""
    return weights - 1e-6 * jax.grad(lambda w: jnp.square(rows @ w).mean())(weights)


weights = jnp.ones((1024, 1024))
for length in range(500, 512):
    weights = step(weights, jax.device_put(np.ones((length, 1024), np.float32)))
print(weights.sum())
