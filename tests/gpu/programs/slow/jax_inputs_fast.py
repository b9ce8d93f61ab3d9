"""The repaired twin of jax_inputs_slow.py."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(weights, x):
    """One step."""
    return weights - 1e-6 * jax.grad(lambda w: jnp.square(x @ w).mean())(weights)


weights = jnp.ones((1024, 1024))
batch = np.ones((8192, 1024), np.float32)
batch = jax.device_put(batch)
for _ in range(100):
    weights = step(weights, batch)
print(weights.sum())
