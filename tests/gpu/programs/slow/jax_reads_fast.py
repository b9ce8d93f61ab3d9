"""The repaired twin of jax_reads_slow.py."""

import jax
import jax.numpy as jnp


@jax.jit
def step(weights, x):
    """One step."""
    loss, slope = jax.value_and_grad(lambda w: jnp.square(x @ w @ w).mean())(weights)
    return weights - 1e-6 * slope, loss


weights, x = jnp.ones((2048, 2048)), jnp.ones((2048, 2048))
total = 0.0
for _ in range(200):
    weights, loss = step(weights, x)
    total += loss
print(weights.sum(), total)
