"""Time and memory of `bragg ranks` on a job of many ranks: 1,000 with 2,000 call paths and 500 collectives each.

    python benchmarks/ranks_scale.py [--ranks 1000] [--paths 2000] [--collectives 500] [--executor dask:ADDRESS]

Rank 420 runs its kernels 5 % slower; the answer must name it. The files are written by bragg's own writer, each from a
timeline of its collectives and of a kernel before each.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bragg.formats.bragg import write
from bragg.formats.job.directory import write_job
from bragg.model import CallTree, FrameKind, FrameTable, Metric, MetricKind, Profile, SliceTable, TrackKind, TrackTable
from bragg.model.ranks.job import Rank

_SLOW, _FACTOR = 420, 1.05
_STEP_NS, _TRANSFER_NS, _EPOCH_NS = 10_000_000, 500_000, 1_700_000_000_000_000_000


def write_ranks(directory: Path, shape: Shape) -> None:
    """Write the job, on all cores."""
    n_files = min(shape.files or shape.ranks, shape.ranks)
    with ProcessPoolExecutor() as pool:
        ranks = list(pool.map(partial(_write_rank, directory, shape), range(n_files), chunksize=16))
    healthy = [rank for rank in ranks if rank.rank != _SLOW % shape.ranks]
    for number in range(n_files, shape.ranks):
        rank = _rank(directory, shape, number)
        rank.path.hardlink_to(healthy[number % len(healthy)].path)
        ranks.append(rank)
    write_job(directory, ranks)


@dataclass(frozen=True)
class Shape:
    """How large a job is."""

    ranks: int
    paths: int
    collectives: int
    files: int = 0  # different ones, to which those of other ranks are links; 0: each rank has its own


@cache
def _work(shape: Shape) -> NDArray[np.float64]:
    """How long each rank works before each collective, in ns: [ranks, collectives]."""
    random = np.random.default_rng(7)
    work = _STEP_NS * (1 + 0.005 * random.standard_normal((shape.ranks, shape.collectives)))
    work[_SLOW % shape.ranks] *= _FACTOR
    return work


def _write_rank(directory: Path, shape: Shape, rank: int) -> Rank:
    found = _rank(directory, shape, rank)
    work, random = _work(shape), np.random.default_rng((7, rank))
    ends = np.cumsum(work.max(axis=0) + _TRANSFER_NS)
    begins = np.append(0, ends[:-1])
    usual = np.random.default_rng(8).integers(1_000, 100_000, shape.paths)
    factor = _FACTOR if rank == _SLOW % shape.ranks else 1.0
    own = usual * factor * (1 + 0.01 * random.standard_normal(shape.paths))
    skew = int(random.normal(0, 2e6))
    write(_profile(_tree(shape.paths), own, begins, begins + work[rank], ends, rank, shape.ranks, skew), found.path)
    return found


def _rank(directory: Path, shape: Shape, rank: int) -> Rank:
    return Rank(rank, directory / f"rank{rank:05d}.bragg", host=f"node{rank // 8:04d}", world=shape.ranks)


@cache
def _tree(n_paths: int) -> CallTree:
    """Kernels below operators below one function, and a collective."""
    names = [("root", FrameKind.ROOT), ("collective allreduce[1048576 f32, group 0 of 0]", FrameKind.OPERATOR)]
    names += [("ncclDevKernel_AllReduce_Sum_f32_RING_LL", FrameKind.KERNEL)]
    names += [(f"model.layers.{number}.attention.projection", FrameKind.SCOPE) for number in range(n_paths)]
    names += [(f"kernel_{number}_of_the_model", FrameKind.KERNEL) for number in range(n_paths)]
    kind = np.array([each for _, each in names], np.uint8)
    n = len(names)
    device = np.where(kind == FrameKind.KERNEL, 0, -1).astype(np.int32)
    frames = FrameTable(kind, [name for name, _ in names], [""] * n, np.zeros(n, np.int32), device)
    parent = np.concatenate([[-1, 0, 1], np.zeros(n_paths), 3 + np.arange(n_paths)]).astype(np.int32)
    return CallTree(parent, np.arange(n, dtype=np.int32), frames)


def _profile(
    tree: CallTree,
    own: np.ndarray,
    begins: np.ndarray,
    arrives: np.ndarray,
    ends: np.ndarray,
    rank: int,
    n_ranks: int,
    skew: int,
) -> Profile:
    n = len(ends)
    first = len(tree) - len(own)
    start = np.concatenate([begins, arrives]).astype(np.int64) + _EPOCH_NS + skew
    lasts = np.concatenate([arrives - begins, ends - arrives]).astype(np.int64)
    node = np.concatenate([np.full(n, first), np.full(n, 2)]).astype(np.int32)
    track = np.repeat([0, 1], n).astype(np.int32)
    slices = SliceTable(start, lasts, node, track, np.zeros(2 * n, np.int64)).sorted()
    gpu = np.zeros(len(tree), np.int64)
    gpu[first:] = own * n
    gpu[2] = int((ends - arrives).sum())
    count = np.zeros(len(tree), np.int64)
    count[first:] = count[2] = n
    metrics = {
        "gpu_time": Metric("gpu_time", "ns", MetricKind.INCLUSIVE, gpu),
        "gpu_count": Metric("gpu_count", "1", MetricKind.INCLUSIVE, count),
    }
    tracks = TrackTable(
        kind=np.full(2, TrackKind.GPU_STREAM, np.uint8),
        process=np.full(2, rank, np.int32),
        device=np.zeros(2, np.int32),
        context=np.zeros(2, np.int64),
        stream=np.array([7, 20], np.int64),
        name=["", ""],
    )
    times = {"started_ns": int(start.min()), "stopped_ns": int((start + lasts).max())}
    return Profile({"rank": rank, "ranks": n_ranks, **times}, tree, metrics, tracks, slices)


def _measure(directory: Path, executor: str | None) -> tuple[float, float, dict[str, Any]]:
    """Seconds, MB and the answer of the whole command."""
    began = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "bragg",
        "ranks",
        str(directory),
        "--json",
        *(["--executor", executor] if executor else []),
    ]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    took = time.perf_counter() - began
    return took, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000, json.loads(answer)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=1000)
    parser.add_argument("--paths", type=int, default=2000)
    parser.add_argument("--collectives", type=int, default=500)
    parser.add_argument("--files", type=int, default=0, help="Write so many, the rest as links; 0: one for each rank.")
    parser.add_argument("--executor", help="As of bragg ranks; its workers' memory is not counted.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path, help="Keep the job here, or use the one that is there.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = options.directory or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        if not (directory / "job.json").exists():
            began = time.perf_counter()
            write_ranks(directory, Shape(options.ranks, options.paths, options.collectives, options.files))
            print(f"wrote {options.ranks} ranks in {time.perf_counter() - began:.1f} s")
        size = sum(path.stat().st_size for path in directory.glob("*.bragg")) / 1e6
        for _ in range(options.rounds):
            took, memory, answer = _measure(directory, options.executor)
            late = [(each["rank"], each["cause"]) for each in answer["stragglers"]]
            print(f"{took:.2f} s, {memory:.0f} MB for {size:.0f} MB of files; named: {late}")


if __name__ == "__main__":
    _main()
