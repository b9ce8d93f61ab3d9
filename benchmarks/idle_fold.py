"""What folding idle time costs: ns a record on the recorder's thread, and ns a launch on the program's. No GPU needed.

The first part compiles the fold from the sources: pauses without a known launch, the history of a launching thread of a
busy GPU, and a pause of the host before each launch. The second launches on the fake driver, recorded and not; run it
before and after a change. Bursts alternate and their medians count. Build the fakes with `make fakes`.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import harness

ROOT = Path(__file__).parents[1]
PARTS = {"launches not known": 0, "history of a busy GPU": 1, "a pause a launch": 2}
SOURCES = (
    *("data/device_activity", "data/activity_curve", "data/idle_fold", "data/idle_table", "data/thread_history"),
    *("data/json", "context/calling_context_tree", "context/frame_table"),
)
RECORDS, LAUNCHES, ROUNDS = 640_000, 2_000, 60


def build(directory: Path) -> ctypes.CDLL:
    """Compile and load the fold."""
    library = directory / "libidle_fold.so"
    sources = [str(ROOT / "native" / f"{name}.cpp") for name in SOURCES]
    flags = ["-std=c++20", "-O2", "-shared", "-fPIC", "-pthread", f"-I{ROOT / 'native'}"]
    subprocess.run(["c++", *flags, str(ROOT / "benchmarks/idle_fold.cpp"), *sources, "-o", str(library)], check=True)
    program = ctypes.CDLL(str(library))
    program.idle_fold_ns.restype = ctypes.c_double
    return program


def cost_of_records(directory: Path, rounds: int) -> dict[str, float]:
    """The median ns a record for each part."""
    program = build(directory)
    found: dict[str, list[float]] = {name: [] for name in PARTS}
    for _ in range(rounds):
        for name, part in PARTS.items():
            found[name].append(program.idle_fold_ns(part, RECORDS))
    return {name: statistics.median(values) for name, values in found.items()}


def cost_of_launches(directory: Path) -> dict[str, float]:
    """The median ns for a launch on the fake driver: not recorded, recorded with idle time, and without it."""
    import bragg
    from memory_growth import FakeGpu

    gpu = FakeGpu()
    options: dict[str, dict[str, Any] | None] = {
        "not recorded": None,
        "with idle time": {},
        "without idle time": {"no_idle": True},
    }
    found: dict[str, list[float]] = {name: [] for name in options}
    for number in range(6):
        for name, told in options.items():
            session = None
            if told is not None:
                path = str(directory / f"{number}.bragg")
                session = bragg.start(path, backend="cuda", context="shadow", force=True, **told)
                time.sleep(0.1)
            for _ in range(ROUNDS // 6):
                start = time.perf_counter_ns()
                gpu.launch(LAUNCHES)
                found[name].append((time.perf_counter_ns() - start) / LAUNCHES)
                time.sleep(0.02)  # the ring of a thread holds 8 ms of launches
            if session is not None:
                session.stop()
    return {name: statistics.median(values) for name, values in found.items()}


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--launches", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ |= {"LD_LIBRARY_PATH": str(harness.FAKES), "BRAGG_CUPTI_DIR": str(harness.FAKES)}
    with tempfile.TemporaryDirectory() as directory:
        if options.launches:
            print(json.dumps(cost_of_launches(Path(directory))))
            return
        result = {
            "ns_per_record": cost_of_records(Path(directory), options.rounds),
            "ns_per_launch": harness.in_child([__file__, "--launches"], timeout_s=120),
        }
    text = json.dumps({"machine": harness.machine(), **result}, indent=1)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
