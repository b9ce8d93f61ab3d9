"""Computes metrics outside of the jitted step."""

import jax
import jax.numpy as jnp


def metrics(weights, loss):
    """What is logged."""
    scale = jnp.sqrt(jnp.square(weights).sum())
    return {"loss": jnp.log1p(loss), "norm": scale, "most": jnp.abs(weights).max(), "share": (weights > 0).mean()}


@jax.jit
def step(weights, x):
    """One step."""
    loss, slope = jax.value_and_grad(lambda w: jnp.square(x @ w).mean())(weights)
    return weights - 1e-3 * slope, loss


weights, x = jnp.ones((512, 256)), jnp.ones((64, 512))
logged = []
for _ in range(200):
    weights, loss = step(weights, x)
    logged.append(metrics(weights, loss))
print(logged[-1])
