"""Convolves images in NCHW, which XLA turns around for cuDNN."""

import jax
import jax.numpy as jnp

LAYOUT = ("NCHW", "OIHW", "NCHW")


def net(filters, x):
    """Four layers."""
    for each in filters:
        x = jax.nn.relu(jax.lax.conv_general_dilated(x, each, (1, 1), "SAME", dimension_numbers=LAYOUT))
    return jnp.square(x.astype(jnp.float32)).mean()


@jax.jit
def step(filters, x):
    """One step."""
    slopes = jax.grad(net)(filters, x)
    return jax.tree.map(lambda w, slope: w - 1e-3 * slope, filters, slopes)


images, filters = (64, 64, 56, 56), [(64, 64, 3, 3)] * 4
x = jnp.full(images, 0.1, jnp.bfloat16)
filters = [jnp.full(each, 0.01, jnp.bfloat16) for each in filters]
for _ in range(100):
    filters = step(filters, x)
jax.block_until_ready(filters)
