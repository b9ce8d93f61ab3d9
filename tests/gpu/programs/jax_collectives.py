"""JAX on two GPUs, of one process or of two: sums of a small and of a large array over both."""

from __future__ import annotations

import os
import sys
import time
from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

LATE_S = 0.02


def main() -> None:
    """Sum so often arrays of so many rows; the second process of two comes late from the middle on."""
    kind, steps, *rows = sys.argv[1], *map(int, sys.argv[2:])
    rank = int(os.environ.get("RANK", "0"))
    if kind == "two":
        port = int(os.environ["MASTER_PORT"]) + 1
        jax.distributed.initialize(f"127.0.0.1:{port}", 2, rank, local_device_ids=[rank])
    mesh = jax.make_mesh((2,), ("x",), devices=jax.devices()[:2])
    split = NamedSharding(mesh, PartitionSpec("x", None))
    arrays = [jax.jit(partial(jnp.ones, (n, 1024)), out_shardings=split)() for n in rows]

    def add(part: jax.Array) -> jax.Array:
        return jax.lax.psum(part, "x")

    functions = []
    for n in rows:
        add.__name__ = f"add_{n}"
        functions.append(jax.jit(jax.shard_map(add, mesh=mesh, in_specs=split.spec, out_specs=PartitionSpec())))
        functions[-1](arrays[len(functions) - 1])
    for step in range(steps):
        if rank == 1 and step >= steps // 2:
            time.sleep(LATE_S)
        for function, array in zip(functions, arrays, strict=True):
            function(array).block_until_ready()
    print("done")


if __name__ == "__main__":
    main()
