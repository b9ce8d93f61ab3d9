"""The repaired twin of new_functions_slow.py."""

import jax
import jax.numpy as jnp

x = jnp.ones((1024, 1024))


def step(x):
    """One step."""
    return jnp.tanh(x @ x) * 1e-3


run = jax.jit(step)
for _ in range(12):
    x = run(x)
print(x.sum())
