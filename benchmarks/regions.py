"""What regions of training cost beside scopes alone, in pairs: a step, and each call of a module in it.

A step is a forward and a backward pass of one tiny module, or of one with 100 modules in it, and a step of the
optimizer. Times are those of the program's thread.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import bragg
import harness

N_INNER = 100
STEPS = 200


def us_per_step(n_inner: int, budget_s: float, directory: str) -> tuple[harness.Ratio, float]:
    """Of a step that calls a module with so many others in it."""
    model = torch.nn.Sequential(*(torch.nn.Identity() for _ in range(n_inner)), torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.ones(1, 1)

    def burst() -> float:
        start = time.thread_time()
        for _ in range(STEPS):
            model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        return time.thread_time() - start

    def recorded(regions: str) -> float:
        name = f"{directory}/burst.bragg"
        session = bragg.start(name, backend="cpu", sample_interval_us=0, framework="off", regions=regions)
        try:
            with bragg.scope("burst"):
                return burst()
        finally:
            session.stop(save=False)

    ratio = harness.Ratio.of(
        harness.alternate(lambda: recorded(""), lambda: recorded("all"), budget_s=budget_s),
    )
    return ratio, (ratio.with_s - ratio.without_s) / STEPS * 1e6


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--budget", type=float, default=10, help="time for the pairs of one case, s")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as directory:
        plain, plain_us = us_per_step(0, arguments.budget, directory)
        nested, nested_us = us_per_step(N_INNER, arguments.budget, directory)
    rows: list[dict[str, Any]] = [
        {"case": "a step", **harness.ratio_row(plain), "us": round(plain_us, 2)},
        {"case": f"a step of {N_INNER} modules", **harness.ratio_row(nested), "us": round(nested_us, 2)},
        {"case": "a call of a module", "us": round((nested_us - plain_us) / N_INNER, 3)},
    ]
    harness.report("regions", rows, arguments.out)


if __name__ == "__main__":
    main()
