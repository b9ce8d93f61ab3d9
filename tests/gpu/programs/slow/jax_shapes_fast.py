"""The repaired twin of jax_shapes_slow.py."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(weights, rows):
    """One step."""
    return weights - 1e-6 * jax.grad(lambda w: jnp.square(rows @ w).mean())(weights)


weights = jnp.ones((1024, 1024))
for _ in range(12):
    weights = step(weights, jax.device_put(np.ones((512, 1024), np.float32)))
print(weights.sum())
