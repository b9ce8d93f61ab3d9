"""Launches of 96 threads: as they are, with CUPTI's kernel records alone, with bragg; the worst ms of each run.

The program is that of `tests/gpu/test_untouched.py`, in C++ without Python. It waits for the processor and the driver's
lock anyway, so the three take turns: what bragg adds is the difference to CUPTI alone.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import harness
from cupti_floor import build_floor, mapped_library

PROGRAM = Path(__file__).parents[1] / "tests" / "gpu" / "programs" / "untouched" / "many_threads.cpp"
RUN = (sys.executable, "-m", "bragg", "run", "--force", "--no-summary", "-o", "run.bragg", "--")


def cupti_path() -> Path:
    """The copy that PyTorch has mapped, which bragg uses too."""
    import torch  # noqa: F401 (maps it)

    return mapped_library("libcupti.so")


def worst_ms(command: list[str], environment: dict[str, str], directory: Path) -> float:
    """Of one run of the program."""
    done = subprocess.run(
        command, env={**os.environ, **environment}, cwd=directory, capture_output=True, text=True, check=True
    )
    return float(done.stdout.splitlines()[1].split()[1])


def main() -> None:
    """Run the program in turns until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--seconds", type=float, default=30, help="no round begins later")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        compiler = ["c++", "-std=c++20", "-O2", str(PROGRAM), "-o", str(directory / "threads"), "-ldl", "-lpthread"]
        subprocess.run(compiler, check=True)
        floor = {"CUDA_INJECTION64_PATH": str(build_floor(directory)), "CUPTI_FLOOR_LIBRARY": str(cupti_path())}
        contenders: dict[str, tuple[list[str], dict[str, str]]] = {
            "bare": (["./threads"], {}),
            "floor": (["./threads"], floor),
            "bragg run": ([*RUN, "./threads"], {}),
        }
        found: dict[str, list[float]] = defaultdict(list)
        until = time.monotonic() + arguments.seconds
        while not found or time.monotonic() < until:
            for contender, (command, environment) in contenders.items():
                found[contender].append(worst_ms(command, environment, directory))
    rows = [
        {"contender": contender, "median_worst_ms": round(statistics.median(worst), 2), "worst_ms": worst}
        for contender, worst in found.items()
    ]
    harness.report("many_threads", rows, arguments.out)


if __name__ == "__main__":
    main()
