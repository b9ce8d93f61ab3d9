"""Whose kernels are whose, and for how long: GPT-2-small's training under torch.profiler and under bragg, by turns.

python benchmarks/operator_agreement.py --out results.json     (a GPU and PyTorch)

One process runs the same steps again and again, each time under one of the two. What an operator launched itself
counts: its self GPU time.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np

import harness

STEPS = 3
# torch.profiler tells these beside the operator that is under way, with its kernels once more.
LOADING = {"Lazy Function Loading", "Runtime Triggered Module Loading"}


def under_torch(program: Callable[[], None]) -> harness.Times:
    """Kernels, copies and sets by operator as torch.profiler sees them."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        program()
    found: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for event in [event for event in profiler.events() if event.name not in LOADING]:
        for kernel in event.kernels:
            count, time_ns = found[event.name]
            found[event.name] = count + 1, time_ns + 1e3 * kernel.duration
    return dict(found)


def under_bragg(program: Callable[[], None]) -> harness.Times:
    """Likewise, as bragg sees them."""
    import bragg
    from bragg.model import FrameKind

    with tempfile.TemporaryDirectory() as directory:
        session = bragg.start(f"{directory}/operators.bragg", backend="cuda", framework="torch", context="shadow")
        program()
        profile = session.stop(save=False)
    tree, counts, times = profile.tree, profile.own("gpu_count"), profile.own("gpu_time")
    found: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for node in np.flatnonzero(counts):
        operators = [above for above in tree.path(int(node)) if tree.kind[above] == FrameKind.OPERATOR]
        if operators:
            name = tree.label(operators[-1])
            count, time_ns = found[name]
            found[name] = count + int(counts[node]), time_ns + float(times[node])
    return dict(found)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--rounds", type=int, default=5, help="how often each of them records the program")
    arguments = parser.parse_args()

    import workloads

    workload = workloads.Gpt2Step(steps=STEPS)
    workload.prepare()

    def steps() -> None:
        workload.run(nullcontext)

    runs: dict[str, list[harness.Times]] = {"torch": [], "bragg": []}
    for _ in range(arguments.rounds):
        runs["torch"].append(under_torch(steps))
        runs["bragg"].append(under_bragg(steps))
    harness.report("operator_agreement", harness.agreement_rows(runs, "operator"), arguments.out)


if __name__ == "__main__":
    main()
