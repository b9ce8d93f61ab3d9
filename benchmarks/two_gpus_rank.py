"""A rank of `two_gpus.py`: a program on two GPUs, whose rank 1 may be made late. It writes to $TWO_GPUS_TOLD."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RANKS, STEPS, WARM_UP, SINCE = 2, 40, 5, 20
ROUNDS, STEPS_OF_BURST, SETTLING = 12, 12, 3
MOST_STEPS = 1_000
LATE_START_S = 3
N_ONCE = 10  # times as late where it is once
# What `bragg.start` is given.
LEVELS: dict[str, Any] = {"default": {}, "trace": {"data": "trace"}}
# Called when a rank is about to make its first collective.
Ready = Callable[[], None]


def main() -> None:
    """Run some steps and tell their median time, or that of bursts of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=["ddp", "fsdp", "tensor", "jax"])
    parser.add_argument("--plant", default="", help="What makes rank 1 late.")
    parser.add_argument("--late-s", type=float, default=0.0, help="How late it is made in each step.")
    parser.add_argument("--bursts", action="store_true", help="Measure bursts of steps.")
    parser.add_argument("--batches", type=int, default=1, help="Train on so many times the sequences in each step.")
    options = parser.parse_args()
    program, plant, late_s = options.program, options.plant, options.late_s
    rank = int(os.environ["RANK"])
    if plant == "start" and rank == 1:
        from transformers import GPT2LMHeadModel  # noqa: F401  # Once rank 0 has read it, rank 1 would catch up.

        time.sleep(LATE_START_S)
    ready_ns: list[int] = []

    def ready() -> None:
        ready_ns.append(time.monotonic_ns())

    if program == "ddp":
        step = ddp(rank, ready, plant, late_s, options.batches)
    else:
        step = {"fsdp": fsdp, "tensor": tensor_parallel, "jax": shard_map}[program](rank, ready)
    told = {"bursts": bursts_of(step)} if options.bursts else {"step_ms": steps_of(step, rank, plant, late_s)}
    (Path(os.environ["TWO_GPUS_TOLD"]) / f"{rank}.json").write_text(json.dumps({**told, "ready_ns": ready_ns[0]}))
    if program != "jax":
        import torch

        torch.distributed.destroy_process_group()


def steps_of(step: Callable[[int], None], rank: int, plant: str, late_s: float) -> float:
    """Milliseconds of the median step."""
    times = []
    for number in range(STEPS):
        begin = time.perf_counter()
        is_late = plant == "sleep" or (plant == "since" and number >= SINCE) or (plant == "once" and number == SINCE)
        if rank == 1 and is_late:
            time.sleep(late_s * (N_ONCE if plant == "once" else 1))
        step(number)
        times.append(time.perf_counter() - begin)
    return statistics.median(times[WARM_UP:]) * 1e3


def bursts_of(step: Callable[[int], None]) -> dict[str, list[float]]:
    """Seconds of bursts without bragg and with it, in turns."""
    import bragg

    names = ["without", *LEVELS]
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(WARM_UP):
        step(0)
    with tempfile.TemporaryDirectory() as directory:
        for number in range(ROUNDS):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                session = bragg.start(f"{directory}/{name}.bragg", **LEVELS[name]) if name in LEVELS else None
                for _ in range(SETTLING):
                    step(0)
                begin = time.perf_counter()
                for _ in range(STEPS_OF_BURST):
                    step(0)
                found[name].append(time.perf_counter() - begin)
                if session is not None:
                    session.stop(save=False)
    return found


def gpt2(rank: int) -> Any:
    """GPT-2 of transformers with its optimizer and a batch, after the process group is there."""
    import torch

    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl")
    from real_workloads import TransformersGpt2

    return TransformersGpt2()


def ddp(rank: int, ready: Ready, plant: str, late_s: float, n_batches: int) -> Callable[[int], None]:
    """GPT-2 by DistributedDataParallel."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    training = gpt2(rank)
    ready()
    training.tokens = training.tokens.repeat(n_batches, 1)
    training.model = DistributedDataParallel(training.model)
    batches = iter(loader(training.tokens, late_s if plant == "input" and rank == 1 else 0.0))
    other = torch.randn(4096, 4096, device="cuda")

    def step(_: int) -> None:
        training.tokens = next(batches).to("cuda")
        if plant == "work" and rank == 1:
            for _ in range(16):
                other @ other
        training.step()
        torch.cuda.synchronize()

    return step


def loader(tokens: Any, late_s: float) -> Any:
    """A data loader of copies of a batch, whose samples take so long together."""
    from torch.utils.data import DataLoader

    class Samples:
        def __len__(self) -> int:
            return len(tokens) * MOST_STEPS

        def __getitem__(self, index: int) -> Any:
            if late_s:
                time.sleep(late_s / len(tokens))
            return sample

    sample = tokens[0].cpu()
    return DataLoader(Samples(), batch_size=len(tokens))


def fsdp(rank: int, ready: Ready) -> Callable[[int], None]:
    """GPT-2 with its blocks sharded."""
    import torch
    from torch.distributed.fsdp import fully_shard

    training = gpt2(rank)
    ready()
    for block in training.model.transformer.h:
        fully_shard(block)
    fully_shard(training.model)
    training.optimizer = torch.optim.AdamW(training.model.parameters(), lr=1e-4)

    def step(_: int) -> None:
        training.step()
        torch.cuda.synchronize()

    return step


def tensor_parallel(rank: int, ready: Ready) -> Callable[[int], None]:
    """Two matmuls, of which each rank has half."""
    import torch
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    torch.cuda.set_device(rank)
    mesh = init_device_mesh("cuda", (RANKS,), mesh_dim_names=("tp",))
    layers = nn.Sequential(nn.Linear(4096, 16384), nn.GELU(), nn.Linear(16384, 4096)).to("cuda", torch.bfloat16)
    ready()
    layers = parallelize_module(layers, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    batch = torch.randn(2048, 4096, device="cuda", dtype=torch.bfloat16)

    def step(_: int) -> None:
        layers(batch).sum().backward()
        torch.cuda.synchronize()

    return step


def shard_map(rank: int, ready: Ready) -> Callable[[int], None]:
    """A matmul of JAX whose product is summed over both GPUs."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec

    port = int(os.environ["MASTER_PORT"]) + 1
    jax.distributed.initialize(f"127.0.0.1:{port}", RANKS, rank, local_device_ids=[rank])
    mesh = jax.make_mesh((RANKS,), ("x",))
    columns, rows = PartitionSpec(None, "x"), PartitionSpec("x", None)

    def multiply(left: Any, right: Any) -> Any:
        return jax.lax.psum(left @ right, "x")

    product = jax.jit(jax.shard_map(multiply, mesh=mesh, in_specs=(columns, rows), out_specs=PartitionSpec()))
    ready()
    make = jax.jit(lambda: jnp.ones((4096, 4096), jnp.bfloat16), out_shardings=NamedSharding(mesh, columns))
    left, right = make(), jax.jit(make, out_shardings=NamedSharding(mesh, rows))()

    def step(_: int) -> None:
        product(left, right).block_until_ready()

    return step


if __name__ == "__main__":
    main()
