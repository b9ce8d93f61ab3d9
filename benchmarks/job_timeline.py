"""Time and size of one Perfetto trace of 8 ranks with 100,000 slices each, from profiles in memory. Needs no GPU.

The goal is 1 s and 12 MB.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import harness
from bragg.analyze.ranks.collectives import collective_slices
from bragg.formats.perfetto.ranks import write_ranks
from bragg.model import Profile
from bragg.model.ranks.job import Rank

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.large_traces import training_trace

RANKS, SLICES, HOSTS = 8, 100_000, 2
# The kernel that stands for collectives: one launch of twelve, which is one a layer.
KERNEL, NCCL = 2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ROUNDS = 9


def measure(file: Path) -> dict[str, Any]:
    """The row of the result: the median of several times."""
    hosts = [f"n{number}" for number in range(HOSTS)]
    trace = with_collectives(training_trace(SLICES, n_ranks=1))
    ranks = []
    for number in range(RANKS):
        profile = replace(trace, meta={**trace.meta, "rank": number, "pid": 4000})
        ranks.append((Rank(number, file, host=hosts[number % HOSTS], pid=4000), profile))
    times = [harness.seconds(lambda: write_ranks(ranks, file, "run", hosts, collective_slices)) for _ in range(ROUNDS)]
    return {
        "ranks": RANKS,
        "collectives": RANKS * len(collective_slices(trace).row),
        "slices": sum(len(profile.slices) for _, profile in ranks),
        "median_s": round(statistics.median(times), 3),
        "fastest_s": round(min(times), 3),
        "size_mb": round(file.stat().st_size / 1e6, 2),
    }


def with_collectives(trace: Profile) -> Profile:
    """The trace with one of its kernels under a name of NCCL, whose slices are linked over the ranks."""
    frames = trace.tree.frames
    named = f"library::kernel_{KERNEL}<"
    names = [NCCL if named in name else name for name in frames.name]
    return replace(trace, tree=replace(trace.tree, frames=frames.replace(name=names)))


def main() -> None:
    """Measure, and write the result where it is wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        harness.report("job_timeline", [measure(Path(directory) / "job.perfetto-trace")], arguments.out)


if __name__ == "__main__":
    main()
