"""What sampling takes of a program that the host bounds, where sampling goes on and off every 80 ms within a session.

Steps of such a program differ more from session to session than by sampling. Here neighbouring stretches of one session
are compared: a preloaded library (`sampling_switch.cpp`) stops and starts CUPTI's sampler, and lets the threads that
decode samples or ask NVML wait meanwhile. A pair is the median time of a step while it samples, by the mean of the
medians of both neighbours in which it does not; `low` to `high` are where the median over pairs lies with 90 %
confidence, and `mean` also has what hits few pairs. A session that samples nothing (`nothing`) tells the noise.

    python benchmarks/counters_switched.py --out counters_switched.json
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import os
import random
import subprocess
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import harness
from contenders import scratch_directory
from counters_slowdown import RECORDED
from step_cost import told

PERIOD_NS = 80_000_000
SETTLES_S = 3  # counters begin a second after their session
NOTHING = "nothing"
SAMPLING: dict[str, dict[str, Any]] = {
    NOTHING: {"telemetry_hz": 0},
    # The interval that the default set takes beside dynamic_net.
    "counters": {"telemetry_hz": 0, "counters": "default", "counter_interval_us": 1400},
    "telemetry": {"telemetry_hz": 10},
}
PATIENCE_S = 60  # beyond the time that sessions are timed
LEAST_STEPS = 6  # of a stretch, for its median to count
MOST_LAUNCHES = 8_000_000
STEPS_IN_A_ROW = 200
NO_SAMPLER = -1
HERE = Path(__file__).parent
SWITCH = np.dtype([("begin_ns", "i8"), ("end_ns", "i8"), ("is_on", "i4"), ("result", "i4")])
LAUNCH = np.dtype([("begin_ns", "i8"), ("launched_ns", "i8")])

Steps = tuple[np.ndarray, np.ndarray]  # when each begins and ends, in ns
Loop = Callable[[int], Steps]  # takes steps until a time


def empty_kernel(directory: Path) -> Loop:
    """A launch of an empty kernel every 16 us; the launch alone is timed."""
    library = ctypes.CDLL(str(build(directory, "empty_launches")))
    library.take_launches.restype = ctypes.c_int64
    library.take_launches.argtypes = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64]
    if result := library.load_empty_kernel():
        raise SystemExit(f"CUDA refuses the empty kernel: {result}")
    launches = np.zeros(MOST_LAUNCHES, LAUNCH)

    def loop(until_ns: int) -> Steps:
        count = library.take_launches(until_ns, launches.ctypes.data, MOST_LAUNCHES)
        if count < 0:
            raise SystemExit("a launch of the empty kernel failed")
        return launches["begin_ns"][:count], launches["launched_ns"][:count]

    return loop


def dynamic_net(_directory: Path) -> Loop:
    """Steps of 28 small kernels, the same 200 again and again."""
    from workloads import DynamicNet, synchronize

    net = DynamicNet()
    net.prepare()

    def loop(until_ns: int) -> Steps:
        begin_ns = [time.monotonic_ns()]
        while begin_ns[-1] < until_ns:
            random.seed(0)
            for _ in range(STEPS_IN_A_ROW):
                net.step(nullcontext)
                begin_ns.append(time.monotonic_ns())
            synchronize()
        return np.array(begin_ns[:-1]), np.array(begin_ns[1:])

    return loop


PROGRAMS = {"empty_kernel": empty_kernel, "dynamic_net": dynamic_net}


def build(directory: Path, name: str) -> Path:
    """Compile a library from the source of that name."""
    library = directory / f"lib{name}.so"
    flags = ["-std=c++20", "-O2", "-shared", "-fPIC", f"-I{HERE.parent / 'native'}"]
    subprocess.run(["c++", *flags, str(HERE / f"{name}.cpp"), "-o", str(library), "-ldl", "-pthread"], check=True)
    return library


def switched(library: ctypes.CDLL, loop: Loop, lasts_s: float) -> tuple[Steps, np.ndarray, int]:
    """Steps while sampling goes on and off, its switches, and how many calls had to wait."""
    found = ctypes.c_void_p()
    library.begin_switching(ctypes.c_int64(PERIOD_NS))
    try:
        steps = loop(time.monotonic_ns() + int(lasts_s * 1e9))
    finally:
        count = library.end_switching(ctypes.byref(found))
    switches = np.frombuffer(ctypes.string_at(found.value or 0, count * SWITCH.itemsize), SWITCH)
    return steps, switches, library.switch_waits()


def check(sampled: str, switches: np.ndarray, n_waits: int) -> None:
    """Raise where the switch did not do what it says."""
    wanted = 0 if sampled == "counters" else NO_SAMPLER
    if wrong := set(switches["result"].tolist()) - {wanted}:
        raise SystemExit(f"{sampled}: switching CUPTI's sampler gave {wrong}, not {wanted}")
    if (n_waits > 0) != (sampled != NOTHING):
        raise SystemExit(f"{sampled}: {n_waits} calls waited while sampling was off")


def pairs_of(steps: Steps, switches: np.ndarray) -> tuple[np.ndarray, float]:
    """The ratio of each stretch with sampling to its neighbours without, and the median step of those, in ns."""
    begin_ns, end_ns = steps
    medians = []
    for switch, following in itertools.pairwise(switches):
        is_within = (begin_ns >= switch["end_ns"]) & (end_ns < following["begin_ns"])
        taken_ns = (end_ns - begin_ns)[is_within]
        medians.append(np.median(taken_ns) if len(taken_ns) >= LEAST_STEPS else np.nan)
    stretches, is_on = np.array(medians), switches["is_on"][:-1] == 1
    inner = np.flatnonzero(is_on[1:-1]) + 1
    ratios = stretches[inner] / ((stretches[inner - 1] + stretches[inner + 1]) / 2)
    return ratios[np.isfinite(ratios)], float(np.nanmedian(stretches[~is_on]))


def measure(library: ctypes.CDLL, program: str, loop: Loop, sampled: str, lasts_s: float, path: Path) -> dict[str, Any]:
    """The row of a session."""
    import bragg

    session = bragg.start(str(path), **RECORDED, **SAMPLING[sampled])
    loop(time.monotonic_ns() + int(SETTLES_S * 1e9))
    steps, switches, n_waits = switched(library, loop, lasts_s)
    session.stop(save=False)
    check(sampled, switches, n_waits)
    ratios, off_ns = pairs_of(steps, switches)
    if not len(ratios):
        raise SystemExit(f"{program}: no stretch of {PERIOD_NS / 1e6:.0f} ms has {LEAST_STEPS} steps")
    row = {"program": program, "sampled": sampled, "pairs": len(ratios), "step_us": round(off_ns / 1000, 2)}
    return {**row, **told(ratios), "mean": round(float(ratios.mean()), 5)}


def measure_all(switch: Path, programs: list[str], lasts_s: float, directory: Path) -> list[dict[str, Any]]:
    """A row of each program and each kind of sampling, in a process that has preloaded the switch."""
    import torch

    torch.zeros(1, device="cuda")
    library = ctypes.CDLL(str(switch))
    library.end_switching.restype = library.switch_waits.restype = ctypes.c_int64
    loops = {program: PROGRAMS[program](directory) for program in programs}
    return [
        measure(library, program, loop, sampled, lasts_s, directory / "run.bragg")
        for program, loop in loops.items()
        for sampled in SAMPLING
    ]


def main() -> None:
    """Measure in a child, which the switch is preloaded into."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--seconds", type=float, default=20, help="time that each session is switched")
    parser.add_argument("--programs", nargs="*", choices=PROGRAMS, default=[*PROGRAMS])
    parser.add_argument("--switch", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    with scratch_directory() as directory:
        if arguments.switch:
            rows = measure_all(arguments.switch, arguments.programs, arguments.seconds, Path(directory))
            print(json.dumps({"rows": rows}))
            return
        os.environ["LD_PRELOAD"] = str(build(Path(directory), "sampling_switch"))
        command = [__file__, "--switch", os.environ["LD_PRELOAD"], "--seconds", str(arguments.seconds)]
        sessions = len(arguments.programs) * len(SAMPLING)
        patience_s = PATIENCE_S + sessions * (SETTLES_S + arguments.seconds)
        found = harness.in_child([*command, "--programs", *arguments.programs], patience_s)
        del os.environ["LD_PRELOAD"]
    if "error" in found:
        raise SystemExit(f"{found['error']}\n{found.get('stderr', '')}")
    harness.report("counters_switched", found["rows"], arguments.out)


if __name__ == "__main__":
    main()
