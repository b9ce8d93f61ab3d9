"""What operators of PyTorch cost beside scopes alone, in pairs of recordings; and memory over 250,000 steps of them.

`dynamic_net` runs some 130 operators a step with forward, backward and optimizer, on tensors so small that the host is
the limit; `decode` runs 574 without gradients; `gpt2_small` trains a model. One side of each pair is recorded by bragg
with `framework="off"`. A case of its own is what PyTorch takes to call an observer that does nothing: what operators
cost at least. Times are wall time until the device is done on a GPU, else those of the program's thread.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import harness
from bragg.model.ids import NodeId

Backend = Literal["cpu", "cuda"]

BURSTS = 5  # of each recording
# Where 524,288 nodes of autograd stand is kept, 8 MB: three nodes a step fill that table after 175,000.
GROWTH_STEPS = 250_000
SAMPLES = 10


@dataclass(frozen=True)
class Case:
    """One pair.

    Attributes:
        steps: In a burst.
        itt: Operators come as ITT tasks rather than through observers.
        idle: Operators are observed and not recorded.
    """

    workload: str
    steps: int
    context: Literal["python", "shadow"] = "python"
    itt: bool = False
    idle: bool = False


CASES = {
    "operators": Case("dynamic_net", 100),
    "operators, shadow context": Case("dynamic_net", 100, context="shadow"),
    "operators as ITT tasks": Case("dynamic_net", 100, itt=True),
    "an observer that does nothing": Case("dynamic_net", 100, idle=True),
    "decode": Case("decode", 100),
    "decode, shadow context": Case("decode", 100, context="shadow"),
    "decode, an observer that does nothing": Case("decode", 100, idle=True),
    "gpt2_small": Case("gpt2_small", 3),
    "gpt2_small, operators as ITT tasks": Case("gpt2_small", 3, itt=True),
}
# A step of GPT-2 takes a second on a CPU even if its text is short.
GPT2_ON_CPU: dict[str, int] = {"steps": 1, "batch": 1, "length": 64}


def cost(case: Case, backend: Backend, budget_s: float, directory: str) -> dict[str, Any]:
    """Bursts with and without operators, in one process."""
    os.environ["BRAGG_OPERATORS"] = "itt" if case.itt else "observers"
    import bragg

    # PyTorch looks for a collector of ITT when it is loaded, so a recording must have started before.
    first = bragg.start(f"{directory}/first.bragg", backend=backend, sample_interval_us=0)
    with bragg.scope("import"):
        import torch

        import workloads
    first.stop(save=False)
    torch.set_num_threads(1)
    sizes = GPT2_ON_CPU if case.workload == "gpt2_small" and backend == "cpu" else {"steps": case.steps}
    program = workloads.WORKLOADS[case.workload](**sizes)
    clock = time.thread_time if backend == "cpu" else time.perf_counter

    def burst() -> float:
        program.run(bragg.scope)
        return statistics.median(timed() for _ in range(BURSTS))

    def timed() -> float:
        start = clock()
        program.run(bragg.scope)
        return clock() - start

    def recorded(framework: Literal["torch", "off"], around: Callable[[], float] = burst) -> float:
        session = bragg.start(
            f"{directory}/burst.bragg",
            backend=backend,
            sample_interval_us=0,
            context=case.context,
            framework=framework,
        )
        try:
            return around()
        finally:
            session.stop(save=False)

    def observed() -> float:
        from bragg.core import core
        from bragg.record.hooks.torch.operators import library_of

        core.begin_operator_trial(library_of(torch))
        try:
            return burst()
        finally:
            core.end_operator_trial("")

    ratio = harness.Ratio.of(
        harness.alternate(
            lambda: recorded("off"),
            lambda: recorded("off", observed) if case.idle else recorded("torch"),
            budget_s=budget_s,
        )
    )
    us_per_step = (ratio.with_s - ratio.without_s) / sizes["steps"] * 1e6
    return {**harness.ratio_row(ratio), "us_per_step": round(us_per_step, 1)}


def growth(directory: str) -> dict[str, Any]:
    """Resident memory, MB, after each tenth of the steps; each has a forward and a backward pass of a layer."""
    import bragg

    session = bragg.start(f"{directory}/growth.bragg", backend="cpu")
    import torch

    from memory_growth import resident_mb

    torch.set_num_threads(1)
    layer = torch.nn.Linear(4, 4)
    x = torch.ones(2, 4)
    resident = []
    for step in range(1, GROWTH_STEPS + 1):
        with bragg.scope("step"):
            layer(x).sum().backward()
        if step % (GROWTH_STEPS // SAMPLES) == 0:
            resident.append(round(resident_mb(), 1))
    profile = session.stop(save=False)
    counts = profile.own("host_count")
    backward = sum(
        int(counts[node])
        for node in map(NodeId, range(len(profile.tree)))
        if profile.tree.label(node) == "AddmmBackward0"
        and profile.tree.label(NodeId(int(profile.tree.parent[node]))) == "[backward]"
    )
    return {
        "resident_mb": resident,
        "growth_mb": round(resident[-1] - resident[0], 1),
        "last_fifth_mb": round(resident[-1] - resident[-1 - SAMPLES // 5], 1),
        "joined": backward,
    }


def main() -> None:
    """Run one case (as a child) or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--budget", type=float, default=20, help="time for the pairs of one case, s")
    parser.add_argument("--case", choices=[*CASES, "memory"], action="append", help="not all")
    parser.add_argument("--child", action="store_true")
    arguments = parser.parse_args()
    if arguments.child:
        with tempfile.TemporaryDirectory() as directory:
            (name,) = arguments.case
            if name == "memory":
                result = growth(directory)
            else:
                result = cost(CASES[name], arguments.backend, arguments.budget, directory)
        print(json.dumps(result))
        return
    fixed: list[str] = ["--backend", arguments.backend, "--budget", str(arguments.budget), "--child", "--case"]
    rows = [
        {"case": case, **harness.in_child([__file__, *fixed, case], timeout_s=arguments.budget + 400)}
        for case in arguments.case or (*CASES, *(["memory"] if arguments.backend == "cpu" else []))
    ]
    harness.report("operators", rows, arguments.out)


if __name__ == "__main__":
    main()
