"""Jobs of many ranks whose truth is known: what each rank does in each step is simulated, and one may be made late.

    python benchmarks/straggler_jobs.py --list
    python benchmarks/straggler_jobs.py slow-gpu JOB        # writes JOB/rank00000.bragg and so on
    bragg ranks JOB

A rank waits for its input, launches kernels of a forward and a backward pass, whose gradients are reduced in buckets
beside them, and an optimizer. A collective ends on all members of its group at once. Times vary at random by 3 %;
clocks of hosts differ by milliseconds and drift.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from bragg.formats.bragg import write
from bragg.model import (
    CallTree,
    FrameKind,
    FrameTable,
    Metric,
    MetricKind,
    Profile,
    SliceTable,
    TrackKind,
    TrackTable,
)

__all__ = ["HEALTHY", "KINDS", "JobPlan", "Truth", "profiles_of", "write_job_files"]

_EPOCH_NS = 1_700_000_000_000_000_000
_US = 1_000.0
_LAUNCH_NS = 4 * _US
_HOST, _COMPUTE, _MESSAGES, _COPIES, _RANGES = range(5)
_FORWARD = (("sgemm", 400.0), ("softmax", 150.0), ("gelu", 90.0), ("layer_norm", 60.0))
_OPTIMIZER = "Optimizer.step#AdamW.step"


@dataclass(frozen=True)
class Truth:
    """What was planted.

    Attributes:
        ranks: Those that are late; empty: the job is healthy.
        cause: As `bragg.analyze.ranks.causes.Reason` calls it, or `slow link`.
        first_step: The first step that is late; None: any may be named first.
        when: As `When` calls it.
    """

    ranks: tuple[int, ...] = ()
    cause: str = ""
    first_step: int | None = None
    when: str = ""


Factor = Callable[[int, int], float]  # of rank and step


def _one(rank: int, step: int) -> float:
    return 1.0


def _none(rank: int, step: int) -> float:
    return 0.0


@dataclass(frozen=True)
class JobPlan:
    """How a job goes.

    Attributes:
        truth: What is planted in it.
        n_ranks: How many ranks it has.
        n_steps: How many steps each makes.
        n_layers: Layers of the model: four kernels forward and eight backward each.
        gpu: By how much longer all kernels take.
        kernel: Likewise, of the softmax alone.
        input_us: Additional waiting for input.
        host_us: Additional work of the host.
        copy_us: Additional time of the copy of the input.
        more: Additional layers.
        start_ms: When a rank begins later than others.
        link: By how much longer transfers to and from a rank take.
        n_tensor: Ranks of a tensor-parallel group; 1: data parallelism alone.
        bucket_us: Time of the transfer of a bucket.
        skew_ms: Standard deviation of the clocks of hosts.
        drift_ppm: Likewise, of their speeds.
        noise: Of all times, as a share.
        seed: Of the random numbers.
        ends_after: Steps after which a rank was killed, by rank.
        one_stream: Whether buckets are reduced after the backward pass, not beside it.
    """

    truth: Truth = field(default_factory=Truth)
    n_ranks: int = 8
    n_steps: int = 40
    n_layers: int = 4
    gpu: Factor = _one
    kernel: Factor = _one
    input_us: Factor = _none
    host_us: Factor = _none
    copy_us: Factor = _none
    more: Factor = _none
    start_ms: Callable[[int], float] = lambda rank: 0.0
    link: Callable[[int], float] = lambda rank: 1.0
    n_tensor: int = 1
    bucket_us: float = 500.0
    skew_ms: float = 2.0
    drift_ppm: float = 5.0
    noise: float = 0.03
    seed: int = 1
    ends_after: Callable[[int], int] = lambda rank: 1 << 30
    one_stream: bool = False


def _only(rank: int, value: float, usual: float, steps: Callable[[int], bool] = lambda step: True) -> Factor:
    return lambda other, step: value if other == rank and steps(step) else usual


def _kinds() -> dict[str, JobPlan]:
    """The planted stragglers."""
    every = {
        "slow-gpu": JobPlan(Truth((3,), "slow GPU", when="always"), gpu=_only(3, 1.3, 1.0)),
        "slow-gpu-since": JobPlan(
            Truth((5,), "slow GPU", 20, "since"), gpu=_only(5, 1.3, 1.0, lambda step: step >= 20)
        ),
        "slightly-slow-gpu": JobPlan(Truth((0,), "slow GPU", when="always"), gpu=_only(0, 1.08, 1.0)),
        "throttled-gpu": JobPlan(
            Truth((6,), "slow GPU", 5, "sometimes"), gpu=_only(6, 2.0, 1.0, lambda step: step % 5 == 0)
        ),
        "slow-gpu-once": JobPlan(Truth((2,), "slow GPU", 17, "once"), gpu=_only(2, 4.0, 1.0, lambda step: step == 17)),
        "slow-step-of-host": JobPlan(
            Truth((4,), "host", 23, "once"), host_us=_only(4, 40_000.0, 0.0, lambda step: step == 23)
        ),
        "slow-input": JobPlan(Truth((1,), "input", when="always"), input_us=_only(1, 3_000.0, 0.0)),
        "slow-input-at-times": JobPlan(
            Truth((7,), "input", 10, "sometimes"), input_us=_only(7, 20_000.0, 0.0, lambda step: step % 10 == 0)
        ),
        "slow-input-since": JobPlan(
            Truth((2,), "input", 12, "since"), input_us=_only(2, 4_000.0, 0.0, lambda step: step >= 12)
        ),
        "late-start": JobPlan(Truth((6,), "late start", None, "start"), start_ms=lambda rank: 3_000.0 * (rank == 6)),
        "slow-host": JobPlan(Truth((3,), "host", when="always"), host_us=_only(3, 2_500.0, 0.0)),
        "slow-host-since": JobPlan(
            Truth((0,), "host", 25, "since"), host_us=_only(0, 6_000.0, 0.0, lambda step: step >= 25)
        ),
        "more-work": JobPlan(Truth((5,), "more work", when="always"), more=_only(5, 1.0, 0.0)),
        "slow-kernel": JobPlan(Truth((4,), "slow kernel", when="always"), kernel=_only(4, 3.0, 1.0)),
        "slow-copies": JobPlan(Truth((2,), "copies", when="always"), copy_us=_only(2, 3_500.0, 0.0)),
        "slow-link": JobPlan(Truth((6,), "slow link"), n_tensor=4, link=lambda rank: 2.5 if rank == 6 else 1.0),
        "two-ranks": JobPlan(Truth((1,), "slow GPU", when="always"), n_ranks=2, gpu=_only(1, 1.2, 1.0)),
        "minutes-of-skew": JobPlan(
            Truth((3,), "slow GPU", when="always"), gpu=_only(3, 1.2, 1.0), skew_ms=90_000.0, drift_ppm=50.0
        ),
        "tensor-parallel": JobPlan(Truth((2,), "slow GPU", when="always"), n_tensor=4, gpu=_only(2, 1.25, 1.0)),
        "sixty-four-ranks": JobPlan(
            Truth((41,), "slow GPU", when="always"), n_ranks=64, n_steps=20, n_layers=2, gpu=_only(41, 1.25, 1.0)
        ),
        "killed": JobPlan(
            Truth((3,), "slow GPU", when="always"),
            gpu=_only(3, 1.3, 1.0),
            ends_after=lambda rank: 25 if rank == 5 else 1 << 30,
        ),
    }
    return {name: replace(plan, seed=10 + row) for row, (name, plan) in enumerate(every.items())}


def _healthy() -> dict[str, JobPlan]:
    """Jobs in which nothing is planted, of many shapes."""
    shapes = [
        (8, 1, 0.03),
        (2, 1, 0.03),
        (4, 1, 0.05),
        (16, 1, 0.03),
        (8, 4, 0.03),
        (2, 1, 0.01),
        (8, 2, 0.05),
        (3, 1, 0.04),
        (8, 1, 0.08),
        (2, 1, 0.08),
    ]
    return {
        f"healthy-{row}": JobPlan(
            n_ranks=ranks,
            n_tensor=tensor,
            noise=noise,
            seed=100 + row,
            skew_ms=2.0 + 1000.0 * (row % 3),
            one_stream=row >= len(shapes),
            n_layers=2 + row % 4,
        )
        for row, (ranks, tensor, noise) in enumerate(shapes * 2)
    }


KINDS = _kinds()
HEALTHY = _healthy()


class _Process:
    """One rank: its clocks and what it has recorded."""

    def __init__(self, rank: int, plan: JobPlan) -> None:
        self.rank = rank
        self._random = np.random.default_rng((plan.seed, rank))
        self._noise = plan.noise
        self.speed = 1 + 0.004 * self._random.standard_normal()
        self.offset_ns = plan.skew_ms * 1e6 * self._random.standard_normal()
        self.drift = plan.drift_ppm * 1e-6 * self._random.standard_normal()
        self.host_ns = 1e6 + plan.start_ms(rank) * 1e6
        self.compute_ns = self.messages_ns = self.copy_ns = 0.0
        self.nodes: dict[tuple[tuple[int, str], ...], int] = {(): 0}
        self.rows: list[tuple[float, float, int, int, int]] = []
        self._correlation = 0

    def vary(self, time_ns: float) -> float:
        return time_ns * max(1 + self._noise * self._random.standard_normal(), 0.3)

    def node(self, *path: tuple[int, str]) -> int:
        for depth in range(1, len(path) + 1):
            self.nodes.setdefault(path[:depth], len(self.nodes))
        return self.nodes[path]

    def add(self, track: int, start: float, end: float, node: int, correlation: int = 0) -> None:
        self.rows.append((start, end, node, track, correlation))

    def launch(self, *path: tuple[int, str]) -> int:
        """The host launches something; its correlation id."""
        self._correlation += 1
        took = self.vary(_LAUNCH_NS)
        node = self.node(*path, (FrameKind.GPU_API, "cuLaunchKernel"))
        self.add(_HOST, self.host_ns, self.host_ns + took, node, self._correlation)
        self.host_ns += took
        return self._correlation

    def kernel(self, name: str, took_ns: float, *path: tuple[int, str]) -> None:
        correlation = self.launch(*path)
        start = max(self.compute_ns, self.host_ns)
        self.compute_ns = start + self.vary(took_ns * self.speed)
        self.add(_COMPUTE, start, self.compute_ns, self.node(*path, (FrameKind.KERNEL, name)), correlation)


_MAIN = (FrameKind.PYTHON, "train.py:20@main")


def _run(plan: JobPlan) -> list[_Process]:
    processes = [_Process(rank, plan) for rank in range(plan.n_ranks)]
    groups = _groups(plan)
    for step in range(plan.n_steps):
        alive = [each for each in processes if step < plan.ends_after(each.rank)]
        for each in alive:
            _begin_step(each, plan, step)
        n_layers = plan.n_layers
        for _ in range(n_layers):
            for each in alive:
                _layer(each, plan, step, "forward", 1.0)
            if plan.n_tensor > 1:
                _collective(alive, plan, groups["tensor"], "AllReduce", plan.bucket_us / 3, is_blocking=True)
        for each in alive:
            for _ in range(int(plan.more(each.rank, step))):
                _layer(each, plan, step, "auxiliary loss", 1.5)
        for layer in range(n_layers):
            for each in alive:
                _layer(each, plan, step, "backward", 2.0)
            if not plan.one_stream or layer == n_layers - 1:
                _collective(alive, plan, groups["data"], "AllReduce", plan.bucket_us, is_blocking=False)
        for each in alive:
            _end_step(each, plan, step)
    return processes


def _groups(plan: JobPlan) -> dict[str, list[tuple[str, list[int]]]]:
    n, width = plan.n_ranks, plan.n_tensor
    if width == 1:
        return {"data": [("0", list(range(n)))]}
    data = [(f"dp{place}", list(range(place, n, width))) for place in range(width)]
    tensor = [(f"tp{first // width}", list(range(first, first + width))) for first in range(0, n, width)]
    return {"data": data, "tensor": tensor}


def _begin_step(each: _Process, plan: JobPlan, step: int) -> None:
    waited = each.vary(200 * _US) + plan.input_us(each.rank, step) * _US
    data = (FrameKind.MARKER, "data")
    each.add(_RANGES, each.host_ns, each.host_ns + waited, each.node(_MAIN, data))
    each.add(_HOST, each.host_ns, each.host_ns + waited, each.node(_MAIN, (FrameKind.PYTHON, "data.py:7@next_batch")))
    each.host_ns += waited
    worked = each.vary(100 * _US) + plan.host_us(each.rank, step) * _US
    each.add(
        _HOST, each.host_ns, each.host_ns + worked, each.node(_MAIN, (FrameKind.PYTHON, "train.py:31@log_metrics"))
    )
    each.host_ns += worked
    correlation = each.launch(_MAIN)
    start = max(each.copy_ns, each.host_ns)
    each.copy_ns = start + each.vary(80 * _US) + plan.copy_us(each.rank, step) * _US
    each.add(_COPIES, start, each.copy_ns, each.node(_MAIN, (FrameKind.MEMORY, "copy HtoD")), correlation)
    each.compute_ns = max(each.compute_ns, each.copy_ns)


def _layer(each: _Process, plan: JobPlan, step: int, part: str, longer: float) -> None:
    for name, took_us in _FORWARD:
        factor = plan.gpu(each.rank, step) * (plan.kernel(each.rank, step) if name == "softmax" else 1.0)
        for half in ("a", "b")[: round(longer)]:
            path = (_MAIN, (FrameKind.PYTHON, f"model.py:12@{part}"), (FrameKind.OPERATOR, f"aten::{name}_{half}"))
            each.kernel(f"{name}_kernel", took_us * factor * longer / round(longer) * _US, *path)


def _collective(
    alive: Sequence[_Process],
    plan: JobPlan,
    groups: Sequence[tuple[str, list[int]]],
    name: str,
    took_us: float,
    *,
    is_blocking: bool,
) -> None:
    """A blocking one stands in the way of the next kernel; others run beside the backward pass."""
    for group, numbers in groups:
        members = [each for each in alive if each.rank in numbers]
        starts, ids = [], []
        told = f"collective allreduce[{round(took_us * 1000)} f32, group {group} of {len(numbers)}]"
        path = (_MAIN, (FrameKind.OPERATOR, told))
        for each in members:
            ids.append(each.launch(*path))
            starts.append(max(each.messages_ns, each.compute_ns, each.host_ns))
        link = max(plan.link(each.rank) for each in members)
        end = max(starts) + members[0].vary(took_us * link * _US)
        for each, start, correlation in zip(members, starts, ids, strict=True):
            node = each.node(*path, (FrameKind.KERNEL, f"ncclDevKernel_{name}_Sum_f32_RING_LL"))
            each.messages_ns = end + abs(each.vary(2 * _US) - 2 * _US)
            each.add(_MESSAGES, start, each.messages_ns, node, correlation)
            if is_blocking:
                each.compute_ns = max(each.compute_ns, each.messages_ns)


def _end_step(each: _Process, plan: JobPlan, step: int) -> None:
    each.compute_ns = max(each.compute_ns, each.messages_ns)
    begin = each.host_ns
    each.kernel("adamw_kernel", 300 * _US * plan.gpu(each.rank, step), _MAIN, (FrameKind.OPERATOR, _OPTIMIZER))
    each.add(_HOST, begin, each.host_ns, each.node(_MAIN, (FrameKind.OPERATOR, _OPTIMIZER)))
    each.host_ns = max(each.host_ns, each.compute_ns)  # `loss.item()`


def _profile(each: _Process, plan: JobPlan) -> Profile:
    paths = list(each.nodes)
    parent = np.array([each.nodes[path[:-1]] if path else -1 for path in paths], np.int32)
    frames = [_frame(path[-1]) if path else (int(FrameKind.ROOT), "root", "", 0, -1) for path in paths]
    kind, name, file, line, device = (list(column) for column in zip(*frames, strict=True))
    table = FrameTable(np.array(kind, np.uint8), name, file, np.array(line, np.int32), np.array(device, np.int32))
    tree = CallTree(parent, np.arange(len(paths), dtype=np.int32), table)
    start, end, node, track, correlation = np.array(each.rows).T
    begins = _EPOCH_NS + np.round(each.offset_ns + start * (1 + each.drift)).astype(np.int64)
    lasts = np.round((end - start) * (1 + each.drift)).astype(np.int64)
    slices = SliceTable(begins, lasts, node.astype(np.int32), track.astype(np.int32), correlation.astype(np.int64))
    is_gpu = np.isin(slices.track, (_COMPUTE, _MESSAGES, _COPIES))
    metrics = [
        Metric(name, unit, MetricKind.INCLUSIVE, np.bincount(slices.node[chosen], weight, len(tree)).astype(np.int64))
        for name, unit, chosen, weight in (
            ("gpu_time", "ns", is_gpu, slices.duration_ns[is_gpu]),
            ("gpu_count", "1", is_gpu, np.ones(is_gpu.sum())),
            ("host_time", "ns", slices.track == _HOST, slices.duration_ns[slices.track == _HOST]),
        )
    ]
    kinds = [TrackKind.HOST_THREAD, *[TrackKind.GPU_STREAM] * 3, TrackKind.RANGES]
    tracks = TrackTable(
        kind=np.array(kinds, np.uint8),
        process=np.full(5, 1000 + each.rank, np.int32),
        device=np.array([-1, 0, 0, 0, -1], np.int32),
        context=np.zeros(5, np.int64),
        stream=np.array([1, 7, 20, 14, 0], np.int64),
        name=["main", "stream 7", "stream 20", "stream 14", ""],
        rank=np.full(5, each.rank, np.int32),
        host=[f"node{each.rank // 8}"] * 5,
    )
    meta = {
        "pid": 1000 + each.rank,
        "rank": each.rank,
        "ranks": plan.n_ranks,
        "host": f"node{each.rank // 8}",
        "command": ["python", "train.py"],
        "started_ns": int(slices.start_ns.min()),
        "stopped_ns": int((slices.start_ns + slices.duration_ns).max()),
        "gpu_first_ns": int(slices.start_ns[is_gpu].min()),
        "gpu_last_ns": int((slices.start_ns + slices.duration_ns)[is_gpu].max()),
    }
    if each.rank < plan.n_ranks and plan.ends_after(each.rank) < plan.n_steps:
        meta["capture"] = {"complete": False}
    return Profile(meta, tree, {metric.name: metric for metric in metrics}, tracks, slices.sorted())


def _frame(frame: tuple[int, str]) -> tuple[int, str, str, int, int]:
    kind, label = frame
    if kind == FrameKind.PYTHON:
        place, name = label.split("@")
        file, line = place.split(":")
        return int(kind), name, file, int(line), -1
    return int(kind), label, "", 0, 0 if kind in (FrameKind.KERNEL, FrameKind.MEMORY) else -1


def profiles_of(plan: JobPlan) -> list[Profile]:
    """The profiles of all ranks of a job, with timelines."""
    return [_profile(each, plan) for each in _run(plan)]


def write_job_files(plan: JobPlan, directory: Path) -> list[Path]:
    """Write a `.bragg` file for each rank."""
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    for rank, profile in enumerate(profiles_of(plan)):
        files.append(directory / f"rank{rank:05d}.bragg")
        write(profile, files[-1])
    return files


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", nargs="?", choices=[*KINDS, *HEALTHY])
    parser.add_argument("directory", nargs="?", type=Path)
    parser.add_argument("--list", action="store_true", help="Name the kinds of jobs.")
    options = parser.parse_args()
    if options.list or options.kind is None or options.directory is None:
        print("\n".join([*KINDS, *HEALTHY]))
        return
    plan = {**KINDS, **HEALTHY}[options.kind]
    files = write_job_files(plan, options.directory)
    print(f"{len(files)} ranks in {options.directory}; planted: {plan.truth}")


if __name__ == "__main__":
    _main()
