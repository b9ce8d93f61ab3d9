"""Whether bragg and torch.profiler see the same run: as many kernels, and the same GPU time to 1 %.

Both read CUPTI's activity buffers, whose callbacks are one pair per process, so the two cannot watch one run together.
Instead a deterministic program (GPT-2 small, fixed seed, fixed algorithms) runs in a child process of its own under
each, in turn: bragg, torch.profiler, bragg, ... The number of kernels must be equal in every child. Kernel times vary
with the GPU's clock from child to child, so the totals' medians are compared, and the spread within each profiler is
printed beside the difference: a difference below the spread says nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import harness

STEPS = 20
ROUNDS = 3


def run_program(contender: Any) -> None:
    """Warm up, then a fixed number of steps under the contender."""
    import torch

    from workloads import Gpt2Step

    # cuBLAS and cuDNN may otherwise choose by timing.
    torch.backends.cudnn.benchmark = False
    workload = Gpt2Step(steps=STEPS)
    workload.prepare()
    workload.prepare()
    contender.attach()
    try:
        workload.run(contender.scope)
    finally:
        contender.detach()


def bragg_totals(directory: Path) -> dict[str, int]:
    """Kernels and their time as a profile has them."""
    import bragg
    from bragg.model import FrameKind
    from contenders import Bragg

    contender = Bragg(directory, "shadow")
    run_program(contender)
    profile = bragg.load(contender.profile_path)
    kernels = profile.tree.kind == FrameKind.KERNEL
    return {name: int(profile.own(f"gpu_{name}")[kernels].sum()) for name in ("count", "time")}


def torch_totals(directory: Path) -> dict[str, int]:
    """Kernels and their time as torch.profiler's trace has them; its durations are microseconds."""
    from contenders import TorchProfiler

    contender = TorchProfiler(directory, host=False)
    run_program(contender)
    trace = directory / "trace.json"
    contender.profile.export_chrome_trace(str(trace))
    kernels = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("cat") == "kernel"]
    return {"count": len(kernels), "time": round(1e3 * sum(event["dur"] for event in kernels))}


TOTALS = {"bragg": bragg_totals, "torch": torch_totals}


def compare(runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The verdict over all children."""
    counts = {name: sorted({run["count"] for run in of_one}) for name, of_one in runs.items()}
    times = {name: [run["time"] for run in of_one] for name, of_one in runs.items()}
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        "bragg_kernels": counts["bragg"],
        "torch_kernels": counts["torch"],
        "bragg_ms": round(medians["bragg"] / 1e6, 3),
        "torch_ms": round(medians["torch"] / 1e6, 3),
        "difference_percent": round(100 * (medians["bragg"] / medians["torch"] - 1), 3),
        "spread_percent": round(max(100 * (max(values) / min(values) - 1) for values in times.values()), 3),
        "agree": counts["bragg"] == counts["torch"]
        and len(counts["bragg"]) == 1
        and abs(medians["bragg"] / medians["torch"] - 1) <= 0.01,
    }


def main() -> None:
    """Run one program (as a child) or compare; the exit code says whether they agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--contender", choices=TOTALS)
    arguments = parser.parse_args()
    if arguments.contender:
        from contenders import scratch_directory

        with scratch_directory() as directory:
            print(json.dumps(TOTALS[arguments.contender](Path(directory))))
        return
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in TOTALS}
    for _ in range(ROUNDS):
        for name, of_one in runs.items():
            of_one.append(harness.in_child([__file__, "--contender", name], timeout_s=90))
    failed = [run for of_one in runs.values() for run in of_one if "error" in run]
    rows = failed or [compare(runs)]
    harness.report("agreement", rows, arguments.out)
    sys.exit(0 if rows[0].get("agree") else 1)


if __name__ == "__main__":
    main()
