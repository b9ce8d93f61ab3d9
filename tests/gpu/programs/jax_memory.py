"""Arrays of known size, made by two functions, alive for a while; prints what JAX's allocator says of its peak."""

from __future__ import annotations

import json
import time

import jax
import jax.numpy as jnp


def weights() -> list[jax.Array]:
    """Four arrays of 64 MiB."""
    return [jnp.full((16, 1024, 1024), number, jnp.float32) for number in range(4)]


def batch() -> jax.Array:
    """One array of 128 MiB."""
    return jnp.ones((32, 1024, 1024), jnp.float32)


@jax.jit
def step(arrays: list[jax.Array], inputs: jax.Array) -> list[jax.Array]:
    """New weights."""
    return [array + inputs.mean() for array in arrays]


held = weights()
inputs = batch()
jax.block_until_ready([held, inputs])
time.sleep(1)
begin = time.perf_counter()
for _ in range(300):
    held = step(held, inputs)
jax.block_until_ready(held)
print(
    json.dumps({"peak": jax.devices()[0].memory_stats()["peak_bytes_in_use"], "seconds": time.perf_counter() - begin})
)
