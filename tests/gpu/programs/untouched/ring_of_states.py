"""A step that XLA runs as a CUDA graph with products of matrices and a copy of 268 MB: a ring of past states.

Ended with "unspecified launch failure" when records of copies between GPUs were asked for and flushed before it.
"""

from __future__ import annotations

import os

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"

import jax
import jax.numpy as jnp

_CELLS, _TRIALS, _DEPTH = 4096, 256, 64


@jax.jit
def step(
    past: jax.Array, clock: jax.Array, state: jax.Array, near: jax.Array, far: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    total = near @ past[(clock - 5) % _DEPTH] + 0.5 * (far @ past[(clock - 40) % _DEPTH])
    state = state + 0.01 * (jnp.tanh(total) - state)
    return past.at[clock % _DEPTH].set(state), clock + 1, state


def main() -> None:
    keys = jax.random.split(jax.random.key(1), 3)
    near, far = (jax.random.normal(key, (_CELLS, _CELLS)) / _CELLS**0.5 for key in keys[:2])
    state = 0.1 * jax.random.normal(keys[2], (_CELLS, _TRIALS))
    past, clock = jnp.zeros((_DEPTH, _CELLS, _TRIALS)), jnp.zeros((), jnp.int32)
    for _ in range(100):
        past, clock, state = step(past, clock, state, near, far)
    print(f"{float(state.std()):.4f}")


if __name__ == "__main__":
    main()
