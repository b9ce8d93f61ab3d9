"""Time that Triton's launch hooks take for one launch, in ns: none, bragg's and Proton's, in turns.

`bare`: a kernel without metadata. `flops and bytes`: a kernel whose `launch_metadata` function gives both; the time of
the function is in it. The hooks are called as Triton's launcher calls them, through its chains; nothing is launched, so
no GPU is needed. Each contender is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import harness

LAUNCHES = 20_000
ROUNDS = 7
TURNS = 3
CONTENDERS = ("none", "bragg", "Proton")


def work(grid: object, kernel: object, arguments: Mapping[str, int]) -> dict[str, float]:
    """What tutorials give as `launch_metadata`."""
    return {"flops16": 2.0 * arguments["n"], "bytes": 8 * arguments["n"]}


def ns_per_launch(*, has_metadata: bool) -> float:
    """Of the fastest round, since other work of the machine only adds; both hooks are called as around a launch."""
    from triton import knobs
    from triton.compiler.compiler import LazyDict

    def metadata() -> Any:
        described = LazyDict({"name": "kernel", "function": 4096, "stream": 0})
        if has_metadata:
            described.add(work, ((1,), None, {"n": 1024}))
        return described

    def launches() -> float:
        described = [metadata() for _ in range(LAUNCHES)]
        enter, leave = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
        start = time.perf_counter_ns()
        for each in described:
            enter(each)
            leave(each)
        return (time.perf_counter_ns() - start) / LAUNCHES

    launches()
    return min(launches() for _ in range(ROUNDS))


def with_bragg(measure: Callable[[], dict[str, float]], directory: str) -> dict[str, float]:
    """While bragg records; without a GPU nothing asks for its hook, so it is installed by hand."""
    import bragg
    from bragg.record.hooks.imports import when_imported
    from bragg.record.hooks.triton.launch_metadata import ask_launches

    session = bragg.start(f"{directory}/hook.bragg", backend="cpu", context="shadow", sample_interval_us=0)
    watch = when_imported("triton", ask_launches)
    try:
        with bragg.scope("launches"):
            return measure()
    finally:
        watch.remove()
        bragg.stop(session)


def with_proton(measure: Callable[[], dict[str, float]], directory: str) -> dict[str, float]:
    """With Proton's hook and a session that needs no GPU; it compiles kernels of its own for launches with metrics."""
    sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
    import triton_driver
    from triton._C.libproton import proton as libproton
    from triton.profiler.hooks import HookManager
    from triton.profiler.hooks.launch import LaunchHook

    triton_driver.use()
    session = libproton.start(f"{directory}/hook", "shadow", "tree", "instrumentation", "cuda")
    HookManager.register(LaunchHook(), session)
    return measure()


def measure() -> dict[str, float]:
    """Both kinds of launches."""
    return {
        "bare": ns_per_launch(has_metadata=False),
        "flops and bytes": ns_per_launch(has_metadata=True),
    }


def run_contender(name: str) -> dict[str, float]:
    """The figures of one contender, in this process."""
    with tempfile.TemporaryDirectory() as directory:
        if name == "bragg":
            return with_bragg(measure, directory)
        return with_proton(measure, directory) if name == "Proton" else measure()


def take_turns() -> list[dict[str, Any]]:
    """Of the fastest turn."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
    for _ in range(TURNS):
        for name in CONTENDERS:
            argv = [sys.executable, "-W", "ignore", __file__, "--contender", name]
            done = subprocess.run(argv, capture_output=True, text=True, check=True)
            found[name].append(json.loads(done.stdout.splitlines()[-1]))
    return [
        {"hook": name, **{kind: round(min(turn[kind] for turn in turns)) for kind in turns[0]}}
        for name, turns in found.items()
    ]


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contender", choices=CONTENDERS, help="measure one, in this process")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    if arguments.contender:
        sys.stdout.write(json.dumps(run_contender(arguments.contender)) + "\n")
    else:
        harness.report("launch_hook", take_turns(), arguments.out)


if __name__ == "__main__":
    main()
