"""Whose kernels are whose, and for how long: GPT-2-small's training under torch.profiler and under bragg, by turns.

python benchmarks/operator_agreement.py --out results.json     (a GPU and PyTorch)

Each of the two has a process, as torch.profiler keeps CUPTI to itself once it ran; both run the same steps again and
again, in turn. What an operator launched itself counts: its self GPU time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import harness

STEPS = 3
# torch.profiler tells these beside the operator that is under way, with its kernels once more.
LOADING = {"Lazy Function Loading", "Runtime Triggered Module Loading"}

workload: Any = None


def prepare() -> None:
    """The program of this process, warmed up."""
    global workload
    from workloads import Gpt2Step

    workload = Gpt2Step(steps=STEPS)
    workload.prepare()


def under_torch() -> harness.Times:
    """Kernels, copies and sets by operator as torch.profiler sees them."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        workload.run(nullcontext)
    return sums(
        (event.name, 1, 1e3 * kernel.duration)
        for event in profiler.events()
        if event.name not in LOADING
        for kernel in event.kernels
    )


def under_bragg() -> harness.Times:
    """Likewise, as bragg sees them."""
    import bragg
    from bragg.model import FrameKind

    with tempfile.TemporaryDirectory() as directory:
        session = bragg.start(f"{directory}/operators.bragg", backend="cuda", framework="torch", context="shadow")
        workload.run(nullcontext)
        profile = session.stop(save=False)
    tree, counts, times = profile.tree, profile.own("gpu_count"), profile.own("gpu_time")
    operators = {
        node: [above for above in tree.path(node) if tree.kind[above] == FrameKind.OPERATOR]
        for node in np.flatnonzero(counts).tolist()
    }
    return sums(
        (tree.label(above[-1]), int(counts[node]), float(times[node])) for node, above in operators.items() if above
    )


def sums(launches: Iterable[tuple[str, int, float]]) -> harness.Times:
    """Counts and times of each name."""
    found: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for name, more, more_ns in launches:
        count, time_ns = found[name]
        found[name] = count + more, time_ns + more_ns
    return dict(found)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--rounds", type=int, default=5, help="how often each of them records the program")
    arguments = parser.parse_args()

    runs: dict[str, list[harness.Times]] = {"torch": [], "bragg": []}
    processes = multiprocessing.get_context("spawn")
    with processes.Pool(1, prepare) as with_torch, processes.Pool(1, prepare) as with_bragg:
        for _ in range(arguments.rounds):
            runs["torch"].append(with_torch.apply(under_torch))
            runs["bragg"].append(with_bragg.apply(under_bragg))
    harness.report("operator_agreement", harness.agreement_rows(runs, "operator"), arguments.out)


if __name__ == "__main__":
    main()
