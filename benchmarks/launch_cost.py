"""What recording adds to one launch and to one scope, on the program's thread: ns and instructions. No GPU needed.

The launches are those of the fake driver, many in one C call below eight Python functions; what they take without
recording is taken off. Times are medians of bursts that alternate. Instructions are callgrind's for the main thread
alone, the driver's and Python's with them: of twice as many less those of once as many, so that what is not repeated is
left out. `--instructions` takes minutes; compare two cores by turns, on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import harness

CONTEXTS = ("none", "shadow", "python")
BURST, BURSTS, TURNS = 2_000, 20, 6
COUNTED, COUNTED_BURST, COUNTED_PAUSE_S = 10_000, 500, 0.1  # callgrind runs one thread at a time, 50 times as slowly
SETTLING_S = 0.1  # until the recorder reads the processor's counter
RING_S = 0.02  # the ring of a thread holds 8 ms of launches


def start(context: str, directory: str) -> Any:
    """A session, or nothing."""
    import bragg

    if context == "none":
        return None
    paths: Any = context
    session = bragg.start(f"{directory}/launches.bragg", backend="cuda", context=paths, force=True)
    time.sleep(SETTLING_S)
    return session


def below_three_functions(launch: Any, count: int) -> None:
    """Launch from a path as programs have them."""

    def outer() -> None:
        inner()

    def inner() -> None:
        launch(count)

    outer()


def scopes(count: int) -> None:
    """Scopes that are constructed, entered and left."""
    import bragg

    scope = bragg.scope
    for _ in range(count):
        with scope("region"):
            pass


def times() -> dict[str, float]:
    """The median ns of a launch, by what is recorded."""
    from memory_growth import FakeGpu

    gpu = FakeGpu()
    found: dict[str, list[float]] = {context: [] for context in CONTEXTS}
    for _ in range(TURNS):
        for context in CONTEXTS:
            with tempfile.TemporaryDirectory() as directory:
                session = start(context, directory)
                for _ in range(BURSTS):
                    begin = time.perf_counter_ns()
                    below_three_functions(gpu.launch, BURST)
                    found[context].append((time.perf_counter_ns() - begin) / BURST)
                    time.sleep(RING_S)
                if session is not None:
                    session.stop()
    return {context: statistics.median(values) for context, values in found.items()}


def run_counted(what: str, context: str, count: int) -> None:
    """What callgrind counts."""
    from memory_growth import FakeGpu

    gpu = FakeGpu()
    with tempfile.TemporaryDirectory() as directory:
        session = start(context, directory)
        for _ in range(count // COUNTED_BURST):
            if what == "launch":
                below_three_functions(gpu.launch, COUNTED_BURST)
            else:
                scopes(COUNTED_BURST)
            time.sleep(COUNTED_PAUSE_S)
        sys.stdout.flush()
        if session is not None:
            session.stop()


def instructions(what: str, context: str, count: int) -> int:
    """Of the main thread."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "counts"
        callgrind = ["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={out}"]
        counted = [sys.executable, __file__, "--counted", what, context, str(count)]
        subprocess.run(
            [*callgrind, *counted], check=True, capture_output=True, env=os.environ | {"PYTHONHASHSEED": "0"}
        )
        text = Path(f"{out}-01").read_text()
    found = re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)
    if found is None:
        raise RuntimeError("callgrind has written no sum")
    return int(found[1])


def instruction_rows() -> list[dict[str, Any]]:
    """Of one launch and of one scope."""
    rows = []
    for what in ("launch", "scope"):
        for context in CONTEXTS:
            more = instructions(what, context, 2 * COUNTED) - instructions(what, context, COUNTED)
            rows.append({"what": what, "recorded": context, "instructions": round(more / COUNTED)})
    return rows


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--instructions", action="store_true", help="with callgrind, which takes minutes")
    parser.add_argument("--times", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--counted", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ |= {"LD_LIBRARY_PATH": str(harness.FAKES), "BRAGG_CUPTI_DIR": str(harness.FAKES)}
    if options.counted:
        run_counted(options.counted[0], options.counted[1], int(options.counted[2]))
        return
    if options.times:
        print(json.dumps(times()))
        return
    found = harness.in_child([__file__, "--times"], timeout_s=180)
    rows = [
        {"what": "launch", "recorded": context, "ns": round(found[context] - found["none"])} for context in CONTEXTS[1:]
    ]
    if options.instructions:
        rows += instruction_rows()
    harness.report("launch_cost", rows, options.out)


if __name__ == "__main__":
    main()
