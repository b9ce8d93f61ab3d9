"""Time to record values of metrics, in ns a call of `record_metrics`; tensors on a GPU where there is one."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import bragg
import harness
from bragg.record.inside.metric_values import record_metrics

REPEATS = 20_000
ROUNDS = 7
ON_THE_CPU: dict[str, Mapping[str, Any]] = {
    "float": {"loss": 0.5},
    "int": {"tokens": 4096},
    "four numbers": {"loss": 0.5, "tokens": 4096, "io (ms)(exc)": 1.5, "tile (pty)": 128},
    "numpy scalar": {"norm": np.float32(0.5)},
    "list of four": {"counts": [1, 2, 3, 4]},
}


def ns_per_call(metrics: Mapping[str, Any]) -> float:
    """Median over the rounds."""

    def calls() -> float:
        start = time.perf_counter_ns()
        for _ in range(REPEATS):
            record_metrics(metrics)
        return (time.perf_counter_ns() - start) / REPEATS

    calls()
    return statistics.median(calls() for _ in range(ROUNDS))


def on_the_gpu() -> dict[str, Mapping[str, Any]]:
    """Nothing where there is no GPU."""
    if not harness.gpu_is_here():
        return {}
    import torch

    if not torch.cuda.is_available():  # CUDA_VISIBLE_DEVICES hides it
        return {}
    return {
        "tensor on the GPU": {"loss": torch.zeros((), device="cuda")},
        "vector of 64 on the GPU": {"counts of experts": torch.zeros(64, device="cuda")},
    }


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    cost_ns = {"any, not recording": ns_per_call({"loss": 0.5})}
    on_gpu = on_the_gpu()
    with tempfile.TemporaryDirectory() as directory:
        session = bragg.start(f"{directory}/metrics.bragg", backend="cuda" if on_gpu else "cpu", context="shadow")
        try:
            with bragg.scope("metrics"):
                cost_ns |= {name: ns_per_call(values) for name, values in (ON_THE_CPU | on_gpu).items()}
        finally:
            bragg.stop(session)
    rows = [{"value": name, "ns": round(cost)} for name, cost in cost_ns.items()]
    harness.report("metric_cost", rows, arguments.out)


if __name__ == "__main__":
    main()
