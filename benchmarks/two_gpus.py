"""Two GPUs of one host: what recording costs a DDP job, and whether `bragg ranks` names the rank that was made late.

    python benchmarks/two_gpus.py [cost|planted|programs ...] [--out FILE]

`cost` runs DDP of GPT-2 without and with bragg in turns. `planted` runs healthy jobs, and makes rank 1 late in six ways
by a third of their step. `programs` records FSDP, a tensor-parallel matmul and a shard_map of JAX. No card's setting
changes.

Hosts that others share make ranks late by themselves, so what is named is compared with the clock that both ranks have,
at which `bragg ranks` does not look. A job is right if a rank that was made late is named with the cause, and if by the
clock each named rank was late in the named steps by what is said, within `ALLOWED`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import harness

RANKS, STEPS, WARM_UP, SINCE = 2, 40, 5, 20
LIMIT_S = 60
ROUNDS = 2
LEAST_LATE_S, LATE_SHARE = 0.008, 0.35  # of the step of a healthy job
N_ONCE = 10  # times as late where it is once
ALLOWED = 0.2  # of what a rank costs
LATE_START_S = 3
# Options of `bragg run` whose part of the cost is asked for.
LEVELS = {
    "sums": [],
    "trace": ["--data", "trace"],
    "no operators": ["--framework", "off"],
    "no NVTX": ["--no-nvtx"],
    "no call paths": ["--context", "shadow"],
}
# By name the cause that `bragg ranks` must give, and when.
PLANTED = {
    "sleep": ("host", "always"),
    "since": ("host", "since"),
    "once": ("host", "once"),
    "input": ("input", "always"),
    "work": ("more work", "always"),
    "start": ("late start", "start"),
}
PROGRAMS = ("fsdp", "tensor", "jax")
# Called when a rank is about to make its first collective.
Ready = Callable[[], None]


def main() -> None:
    """Measure, and write the result where it is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["cost", "planted", "programs"])
    parser.add_argument("--worker", metavar="PROGRAM", help="Run as a rank.")
    parser.add_argument("--plant", default="", choices=["", *PLANTED])
    parser.add_argument("--late-s", type=float, default=LEAST_LATE_S, help="How late a rank is made in each step.")
    parser.add_argument("--keep", type=Path, help="Keep the jobs of `planted` and `programs` here.")
    parser.add_argument("--out", type=Path, help="JSON file to write.")
    options = parser.parse_args()
    if options.worker:
        worker(options.worker, options.plant, options.late_s)
        return
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        directory = options.keep or Path(temporary)
        for part in options.parts:
            for row in {"cost": costs, "planted": planted, "programs": programs}[part](directory):
                rows.append(row)
                print(json.dumps(row), flush=True)
    harness.report("two_gpus", rows, options.out)


def costs(directory: Path) -> Iterator[dict[str, Any]]:
    """The step of a DDP job without and with bragg, in turns; each number is the median step of the slower rank."""
    steps: dict[str, list[float]] = {"without": [], **{name: [] for name in LEVELS}}
    for _ in range(ROUNDS):
        for name, times in steps.items():
            recorded = None if name == "without" else ["--no-summary", "--force", *LEVELS[name]]
            times.append(run("ddp", "", directory / "cost", recorded)["step_ms"])
    usual = statistics.median(steps["without"])
    for name, times in steps.items():
        ratios = [with_bragg / without for with_bragg, without in zip(times, steps["without"], strict=True)]
        yield {
            "case": f"cost: {name}",
            "step_ms": round(statistics.median(times), 3),
            "ratio": round(statistics.median(ratios), 3),
            "of_median": round(statistics.median(times) / usual, 3),
        }


def planted(directory: Path) -> Iterator[dict[str, Any]]:
    """Two healthy jobs, and jobs whose rank 1 is made late."""
    step_ms = 0.0
    for number in range(2):
        yield (row := recorded_row("ddp", "", directory / f"ddp-healthy-{number}"))
        step_ms = max(step_ms, row.get("step_ms", 0.0))
    late_s = max(LEAST_LATE_S, LATE_SHARE * step_ms / 1e3)
    for plant in PLANTED:
        yield {**recorded_row("ddp", plant, directory / f"ddp-{plant}", late_s), "late_ms": round(late_s * 1e3, 1)}


def programs(directory: Path) -> Iterator[dict[str, Any]]:
    """Healthy jobs of other kinds."""
    for program in PROGRAMS:
        yield recorded_row(program, "", directory / program)


def recorded_row(program: str, plant: str, job: Path, late_s: float = LEAST_LATE_S) -> dict[str, Any]:
    """A recorded job and what `bragg ranks` says of it; why it failed, if it did."""
    case = {"case": f"{program} {plant or 'healthy'}"}
    try:
        found = run(program, plant, job, ["--no-summary", "--force", "--data", "trace"], late_s)
        answer = bragg_json("ranks", job)
    except (subprocess.SubprocessError, RuntimeError) as error:
        return {**case, "is_right": False, "stderr": str(error)}
    named = answer["stragglers"]
    late_ns = late_by_clock(job)
    late_ns[0][-1], late_ns[1][-1] = ((each - min(found["ready_ns"])) for each in found["ready_ns"])
    by_clock = [
        sum(late_ns[each["rank"]].get(step, 0.0) for step in ([-1] if each["when"] == "start" else each["steps"]))
        for each in named
    ]
    causes = [(each["rank"], each["cause"]) for each in named]
    exposed = answer["exposed"] or {"share": None}
    return {
        **case,
        "step_ms": round(found["step_ms"], 3),
        "collectives": answer["n_collectives"],
        "exposed": exposed["share"],
        "bus_gb_s": [round(each["bus_bytes_per_s"] / 1e9, 1) for each in answer["transfers"][:1]],
        "named": [[each["rank"], each["cause"], each["when"], round(each["cost_ns"] / 1e6, 1)] for each in named],
        "by_clock_ms": [round(late / 1e6, 1) for late in by_clock],
        "is_right": (not plant or (1, PLANTED[plant][0]) in causes)
        and all(abs(late / each["cost_ns"] - 1) < ALLOWED for late, each in zip(by_clock, named, strict=True)),
    }


def late_by_clock(job: Path) -> list[dict[int, float]]:
    """What each of two ranks cost the other in each step beyond what that one cost it, in nanoseconds.

    Of the time by which it came later to a collective, what the other had nothing else to do in.
    """
    from bragg.cli.rank_files import read_ranks

    begins: list[dict[tuple[str, int], tuple[int, int, int]]] = []
    for rank in sorted(read_ranks([job]).summaries, key=lambda rank: rank.rank):
        found = rank.collectives()
        groups = [rank.calls.group[call] for call in found.call.tolist()]
        columns = (found.step.tolist(), found.start_ns.tolist(), found.exposed_ns.tolist())
        begins.append(
            dict(zip(zip(groups, found.sequence.tolist(), strict=True), zip(*columns, strict=True), strict=True))
        )
    late: list[dict[int, float]] = [defaultdict(float) for _ in begins]
    for call in begins[0].keys() & begins[1].keys():
        step, *first = begins[0][call]
        _, *second = begins[1][call]
        last, waited_ns = (0, second[1]) if first[0] > second[0] else (1, first[1])
        cost_ns = min(abs(first[0] - second[0]), waited_ns)
        late[last][step] += cost_ns
        late[1 - last][step] -= cost_ns
    return late


def run(
    program: str, plant: str, job: Path, recorded: list[str] | None, late_s: float = LEAST_LATE_S
) -> dict[str, Any]:
    """Run a program on both GPUs; the median step of the slower rank, and when each came to its first collective.

    Args:
        program: What the ranks run.
        plant: What makes rank 1 late.
        job: Directory that is written.
        recorded: Options of `bragg run`; None: without bragg.
        late_s: How late rank 1 is made in each step.
    """
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS), "--standalone"]
    command = [*launcher, __file__, "--worker", program, "--plant", plant, "--late-s", str(late_s)]
    if recorded is not None:
        command = [sys.executable, "-m", "bragg", "run", *recorded, "-o", f"{job}/", "--", *command]
    with tempfile.TemporaryDirectory() as told:
        environ = {**os.environ, "TWO_GPUS_TOLD": told}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr[-2000:]}")
        rows = [json.loads(path.read_text()) for path in sorted(Path(told).iterdir())]
        return {"step_ms": max(row["step_ms"] for row in rows), "ready_ns": [row["ready_ns"] for row in rows]}


def bragg_json(verb: str, job: Path) -> dict[str, Any]:
    """What a command says, as JSON."""
    command = [sys.executable, "-m", "bragg", verb, str(job), "--json"]
    answer: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer


def worker(program: str, plant: str, late_s: float) -> None:
    """One rank: some steps, whose median time it tells."""
    rank = int(os.environ["RANK"])
    if plant == "start" and rank == 1:
        from transformers import GPT2LMHeadModel  # noqa: F401  # Once rank 0 has read it, rank 1 would catch up.

        time.sleep(LATE_START_S)
    ready_ns: list[int] = []

    def ready() -> None:
        ready_ns.append(time.monotonic_ns())

    if program == "ddp":
        step = ddp(rank, ready, plant, late_s)
    else:
        step = {"fsdp": fsdp, "tensor": tensor_parallel, "jax": shard_map}[program](rank, ready)
    times = []
    for number in range(STEPS):
        begin = time.perf_counter()
        is_late = plant == "sleep" or (plant == "since" and number >= SINCE) or (plant == "once" and number == SINCE)
        if rank == 1 and is_late:
            time.sleep(late_s * (N_ONCE if plant == "once" else 1))
        step(number)
        times.append(time.perf_counter() - begin)
    told = {"step_ms": statistics.median(times[WARM_UP:]) * 1e3, "ready_ns": ready_ns[0]}
    (Path(os.environ["TWO_GPUS_TOLD"]) / f"{rank}.json").write_text(json.dumps(told))
    if program != "jax":
        import torch

        torch.distributed.destroy_process_group()


def gpt2(rank: int) -> Any:
    """GPT-2 of transformers with its optimizer and a batch, after the process group is there."""
    import torch

    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl")
    from real_workloads import TransformersGpt2

    return TransformersGpt2()


def ddp(rank: int, ready: Ready, plant: str, late_s: float) -> Callable[[int], None]:
    """GPT-2 by DistributedDataParallel."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    training = gpt2(rank)
    ready()
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
            return len(tokens) * STEPS

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
