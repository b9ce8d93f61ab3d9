"""A jitted step that lets NumPy compute a number."""

import jax
import jax.numpy as jnp
import numpy as np


def factor(value):
    """A number made on the host."""
    return np.float32(1.0 / (1.0 + value))


@jax.jit
def step(weights, x):
    """One step."""
    loss, slope = jax.value_and_grad(lambda w: jnp.square(x @ w).mean())(weights)
    scale = jax.pure_callback(factor, jax.ShapeDtypeStruct((), jnp.float32), loss)
    return weights - 1e-3 * scale * slope


weights, x = jnp.ones((512, 256)), jnp.ones((64, 512))
for _ in range(200):
    weights = step(weights, x)
print(weights.sum())
