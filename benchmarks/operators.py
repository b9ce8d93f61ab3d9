"""What operators of PyTorch cost beside scopes alone, in pairs on the CPU; and memory over 100,000 steps of them.

The program is `dynamic_net`, some 130 operators a step with forward, backward and optimizer, on tensors so small that
the host is the limit. One side of each pair is recorded by bragg with `framework="off"`; what PyTorch's own emission of
ITT costs without a recording is a case of its own. Times are those of the program's thread on the CPU.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import harness

STEPS = 100
BUDGET_S = 20.0
GROWTH_STEPS = 100_000
SAMPLES = 10
CASES = ("operators", "operators, shadow context", "PyTorch's emission alone")


def cost(case: str, directory: str) -> dict[str, Any]:
    """Bursts with and without operators, in one process."""
    import bragg

    # PyTorch looks for a collector when it is loaded, so a recording must have started before.
    first = bragg.start(f"{directory}/first.bragg", backend="cpu", sample_interval_us=0)
    with bragg.scope("import"):
        import torch

        from workloads import DynamicNet
    first.stop(save=False)
    torch.set_num_threads(1)
    net = DynamicNet(STEPS)

    def burst(scope: Any) -> float:
        net.run(scope)
        start = time.thread_time()
        net.run(scope)
        return time.thread_time() - start

    def recorded(**options: Any) -> float:
        session = bragg.start(f"{directory}/burst.bragg", backend="cpu", sample_interval_us=0, **options)
        try:
            return burst(bragg.scope)
        finally:
            session.stop(save=False)

    def emitting() -> float:
        with torch.autograd.profiler.emit_itt():
            return burst(bragg.scope)

    context = "shadow" if "shadow" in case else "python"
    without, with_operators = {
        CASES[2]: (lambda: burst(bragg.scope), emitting),
    }.get(
        case,
        (lambda: recorded(framework="off", context=context), lambda: recorded(framework="torch", context=context)),
    )
    ratio = harness.Ratio.of(harness.alternate(without, with_operators, budget_s=BUDGET_S))
    return {**harness.ratio_row(ratio), "us_per_step": round((ratio.with_s - ratio.without_s) / STEPS * 1e6, 1)}


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
        for node in range(len(profile.tree))
        if profile.tree.label(node) == "AddmmBackward0"
        and profile.tree.label(int(profile.tree.parent[node])) == "[backward]"
    )
    return {"resident_mb": resident, "growth_mb": round(resident[-1] - resident[0], 1), "joined": backward}


def main() -> None:
    """Run one case (as a child) or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--child", choices=[*CASES, "memory"])
    arguments = parser.parse_args()
    if arguments.child:
        with tempfile.TemporaryDirectory() as directory:
            result = growth(directory) if arguments.child == "memory" else cost(arguments.child, directory)
        print(json.dumps(result))
        return
    rows = [
        {"case": case, **harness.in_child([__file__, "--child", case], timeout_s=120)} for case in (*CASES, "memory")
    ]
    harness.report("operators", rows, arguments.out)


if __name__ == "__main__":
    main()
