"""What recording adds to an operator of PyTorch that finds the caches as a real program leaves them. No GPU needed.

Small nested operators are called from modules, 18 Python functions deep, and each puts a kernel on the fake GPU. Before
each call 4 MB are written, so that neither data nor code of the call is left in the caches of its core: between two
operators PyTorch and a driver of CUDA do the same. What is recorded takes turns within one process; a figure is the median
of the calls of a round, and a row the median over the rounds of what it is longer than the bare call.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import harness

CALLS, WARMUP = 800, 40
EVICTED_BYTES = 4 << 20
SETTLING_S = 0.1  # until the recorder reads the processor's counter
DEPTH = 12  # modules around the innermost one, of one Python function each


@contextmanager
def observed() -> Iterator[None]:
    """With an observer that does nothing."""
    import torch
    from bragg.core import core
    from bragg.record.hooks.torch.operators import library_of

    core.begin_operator_trial(library_of(torch))
    try:
        yield
    finally:
        core.end_operator_trial("")


@contextmanager
def recorded(directory: str, **options: Any) -> Iterator[None]:
    """By bragg."""
    import bragg

    session = bragg.start(f"{directory}/operators.bragg", backend="cuda", force=True, sample_interval_us=0, **options)
    time.sleep(SETTLING_S)
    try:
        yield
    finally:
        session.stop(save=False)


def contenders(directory: str) -> dict[str, Callable[[], AbstractContextManager[None]]]:
    """What takes turns."""
    return {
        "bare": nullcontext,
        "an observer that does nothing": observed,
        "bragg run": lambda: recorded(directory, context="python"),
        "without folding": lambda: recorded(directory, context="python", no_idle=True),
        "without Python paths": lambda: recorded(directory, context="shadow"),
        "without operators": lambda: recorded(directory, context="python", framework="off"),
    }


def program() -> Callable[[], None]:
    """One call: seven operators, four of them nested, and a launch."""
    import torch

    from memory_growth import FakeGpu

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    gpu = FakeGpu()
    x = torch.ones(2, 4)

    class Innermost(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.layer(x)
            gpu.launch(1)
            return y

    class Around(torch.nn.Module):
        def __init__(self, inner: torch.nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x)

    model: torch.nn.Module = Innermost()
    for _ in range(DEPTH):
        model = Around(model)
    return lambda: model(x)


def measure(budget_s: float) -> dict[str, list[float]]:
    """The median ns of a call, by what is recorded, round by round."""
    import numpy as np

    call = program()
    evicting = np.zeros(EVICTED_BYTES, np.uint8)
    clock = time.perf_counter_ns

    def timed() -> float:
        np.add(evicting, 1, out=evicting)
        start = clock()
        call()
        return clock() - start

    found: dict[str, list[float]] = defaultdict(list)
    deadline = time.monotonic() + budget_s
    with tempfile.TemporaryDirectory() as directory:
        while time.monotonic() < deadline:
            for name, contender in contenders(directory).items():
                with contender():
                    for _ in range(WARMUP):
                        timed()
                    found[name].append(statistics.median(timed() for _ in range(CALLS)))
    return found


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--budget", type=float, default=40, help="time for the rounds, s")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ |= {"LD_LIBRARY_PATH": str(harness.FAKES), "BRAGG_CUPTI_DIR": str(harness.FAKES)}
    if options.measure:
        print(json.dumps(measure(options.budget)))
        return
    found = harness.in_child([__file__, "--measure", "--budget", str(options.budget)], options.budget + 60)
    if "error" in found:
        raise SystemExit(found["error"])
    bare = found["bare"]
    rows = []
    for name, times in found.items():
        added = sorted(each - without for each, without in zip(times, bare, strict=True))
        rows.append({"recorded": name, "rounds": len(times), "ns": round(statistics.median(times)),
                     "added_ns": round(statistics.median(added)), "low": round(added[len(added) // 4]),
                     "high": round(added[-1 - len(added) // 4])})
    harness.report("operator_cost", rows, options.out)


if __name__ == "__main__":
    main()
