"""A training step of JAX with scopes, a loop and a command buffer."""

import jax
import jax.numpy as jnp
from jax import lax

N_STEPS = 10


def layer(w: jax.Array, x: jax.Array) -> jax.Array:
    with jax.named_scope("layer"):
        return jnp.tanh(x @ w)


def loss(ws: list[jax.Array], x: jax.Array) -> jax.Array:
    for number, w in enumerate(ws):
        with jax.named_scope(f"block{number}"):
            x = layer(w, x)
    with jax.named_scope("repeated"):
        x, _ = lax.scan(lambda c, _: (jnp.sin(c @ ws[0]), None), x, None, length=4)
    return jnp.mean(x**2)


step = jax.jit(jax.value_and_grad(loss))
ws = [jnp.full((256, 256), 1e-2) for _ in range(2)]
x = jnp.ones((128, 256))
for _ in range(N_STEPS):
    found = step(ws, x)
jax.block_until_ready(found)
