"""How much slower programs become while counters or telemetry sample: `python benchmarks/counters_slowdown.py`.

Rounds of sessions in one recorded process, in alternating order: each samples counters, telemetry, or nothing. Counters
begin a second after their session and find their interval in the next two, so the program runs for that long before
some bursts are timed; a session that has samples of counters and wants none is an error. A program that the host
bounds is timed step by step, and each burst has the same steps: a round's figure is the median over the steps of
their time by that of the same steps without sampling. `low` to `high` are where the median over rounds lies with 90 %
confidence.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

import harness
from step_cost import told

PROGRAMS = ("gpt2_small", "dynamic_net", "copy", "matmul")
_SAMPLING_BEGINS_S = 3.5
_COPIED_BYTES, _SIDE = 1 << 30, 8192
_BURST_S, _LEAST_ROUNDS = 0.5, 2
_BURSTS = 3  # are timed in each session; of each step the median counts
_NONE = "none"
_SAMPLING: dict[str, dict[str, Any]] = {
    _NONE: {"telemetry_hz": 0},
    "counters": {"telemetry_hz": 0, "counters": "default"},
    "counters every 10 ms": {"telemetry_hz": 0, "counters": "default", "counter_interval_us": 10_000},
    "telemetry": {"telemetry_hz": 10},
}
RECORDED: dict[str, Any] = {"backend": "cuda", "context": "shadow", "framework": "off", "data": "trace"}


def copy() -> Callable[[], object]:
    """A copy of 1 GiB."""
    source = torch.empty(_COPIED_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def matmul() -> Callable[[], object]:
    """A product of matrices."""
    matrix = torch.randn(_SIDE, _SIDE, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(matrix)
    return lambda: torch.matmul(matrix, matrix, out=out)


Burst = Callable[[], list[float]]  # the times at which its steps begin, and its end, in s


def steps_of(name: str) -> tuple[int, Callable[[], object]]:
    """How many steps half a second of a program has, and one of them; of a program that the GPU bounds it is one."""
    from workloads import WORKLOADS, DynamicNet, synchronize

    if name in WORKLOADS:
        workload: Any = WORKLOADS[name]()
        workload.prepare()
        if isinstance(workload, DynamicNet):
            return workload.steps, lambda: workload.step(nullcontext)
        return 1, lambda: workload.run(nullcontext)
    launch = {"copy": copy, "matmul": matmul}[name]()
    launch()  # loads the kernel
    synchronize()

    def launches(count: int) -> None:
        for _ in range(count):
            launch()
        synchronize()

    count = max(int(_BURST_S / harness.seconds(lambda: launches(1))), 1)
    return 1, lambda: launches(count)


def burst_of(name: str) -> Burst:
    """Half a second of a program."""
    from workloads import synchronize

    n_steps, step = steps_of(name)

    def burst() -> list[float]:
        random.seed(0)
        times = []
        for _ in range(n_steps):
            times.append(time.perf_counter())
            step()
        synchronize()
        return [*times, time.perf_counter()]

    return burst


def timed(burst: Burst, path: Path, options: dict[str, Any]) -> tuple[np.ndarray, float, int]:
    """Seconds of each step, GPU time in ns, and how many samples of counters were taken, in a session."""
    import bragg

    with bragg.profile(str(path), **RECORDED, **options) as session:
        begins_s = time.monotonic() + (_SAMPLING_BEGINS_S if options.get("counters") else 0)
        burst()
        while time.monotonic() < begins_s:
            burst()
        with bragg.scope("burst"):
            steps_s = np.diff([burst() for _ in range(_BURSTS)])
    profile = session.profile()
    tree = profile.tree
    is_burst = np.array([tree.frames.name[frame] == "burst" for frame in tree.frame])
    counters = profile.meta.get("counters", {})
    n_samples = sum(device.get("samples", 0) for device in counters.get("devices", {}).values())
    if len(profile.counters) and options == _SAMPLING[_NONE]:
        raise SystemExit("counters were sampled in a session that wants none")
    return np.median(steps_s, axis=0), float(profile.inclusive("gpu_time")[is_burst].sum()), n_samples


def slowdown(burst: Burst, path: Path, budget_s: float, sampled: list[str]) -> list[dict[str, Any]]:
    """A row of each kind of sampling, from as many rounds as the time allows."""
    names = [_NONE, *sampled]
    rounds: list[dict[str, tuple[np.ndarray, float, int]]] = []
    deadline = time.monotonic() + budget_s
    while len(rounds) < _LEAST_ROUNDS or time.monotonic() < deadline:
        order = names if len(rounds) % 2 else names[::-1]
        rounds.append({name: timed(burst, path, _SAMPLING[name]) for name in order})
    rows = []
    for name in sampled:
        ratios = np.array([np.median(each[name][0] / each[_NONE][0]) for each in rounds])
        rows.append(
            {
                "sampled": name,
                "rounds": len(rounds),
                "steps": len(rounds[0][name][0]),
                "step_us": round(1e6 * float(np.median([np.median(each[_NONE][0]) for each in rounds])), 1),
                **told(ratios),
                "gpu_time_median": round(float(np.median([each[name][1] / each[_NONE][1] for each in rounds])), 5),
                "least_samples": min(each[name][2] for each in rounds),
            }
        )
    return rows


def main() -> None:
    """Measure one program (as a child) or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--seconds", type=float, default=30, help="time for the rounds of one program")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--sampled", nargs="*", choices=[*_SAMPLING][1:], default=[*_SAMPLING][1:])
    parser.add_argument("--program", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.program:
        import bragg
        from contenders import scratch_directory

        with scratch_directory() as directory:
            # With a session around them those within attach nothing.
            outer = bragg.start(f"{directory}/outer.bragg", **RECORDED, telemetry_hz=0)
            burst = burst_of(arguments.program)
            rows = slowdown(burst, Path(directory, "inner.bragg"), arguments.seconds, arguments.sampled)
            outer.stop(save=False)
        print(json.dumps({"rows": rows}))
        return
    found: list[dict[str, Any]] = []
    for program in arguments.programs.split(","):
        command = [__file__, "--program", program, "--seconds", str(arguments.seconds), "--sampled", *arguments.sampled]
        result = harness.in_child(command, 20 * arguments.seconds)
        found += [{"program": program, **row} for row in result.get("rows", [result])]
        print(json.dumps(found[-len(arguments.sampled) :]), flush=True)
    harness.report("counters_slowdown", found, arguments.out)


if __name__ == "__main__":
    main()
