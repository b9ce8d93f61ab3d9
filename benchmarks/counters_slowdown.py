"""How much slower programs become while counters or telemetry sample: `python benchmarks/counters_slowdown.py`.

Rounds of bursts in one recorded process, in alternating order: each in a session that samples counters, telemetry, or
nothing. Counters begin a second after their session, so the program runs for that long before a burst is timed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

import harness

PROGRAMS = ("gpt2_small", "dynamic_net", "copy", "matmul")
_SAMPLING_BEGINS_S = 1.5
_COPIED_BYTES, _SIDE = 1 << 30, 8192
_BURST_S, _LEAST_ROUNDS = 0.5, 2
_SAMPLING: dict[str, dict[str, Any]] = {
    "none": {"telemetry_hz": 0},
    "counters": {"telemetry_hz": 0, "counters": "default"},
    "counters every 10 ms": {"telemetry_hz": 0, "counters": "default", "counter_interval_us": 10_000},
    "telemetry": {"telemetry_hz": 10},
}
_RECORDED: dict[str, Any] = {"backend": "cuda", "context": "shadow", "framework": "off", "data": "trace"}


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


def burst_of(name: str) -> Callable[[], None]:
    """Half a second of a program."""
    from workloads import WORKLOADS

    if name in WORKLOADS:
        workload = WORKLOADS[name]()
        workload.prepare()
        return lambda: workload.run(nullcontext)
    launch = {"copy": copy, "matmul": matmul}[name]()
    launch()  # loads the kernel
    torch.cuda.synchronize()
    once_s = harness.seconds(lambda: (launch(), torch.cuda.synchronize()))
    count = max(int(_BURST_S / once_s), 1)

    def burst() -> None:
        for _ in range(count):
            launch()
        torch.cuda.synchronize()

    return burst


def timed(burst: Callable[[], None], path: Path, options: dict[str, Any]) -> tuple[float, float, int]:
    """Of a burst its seconds and its GPU time in ns, and how many samples of counters were taken."""
    import bragg

    with bragg.profile(str(path), **_RECORDED, **options) as session:
        begins_s = time.monotonic() + (_SAMPLING_BEGINS_S if options.get("counters") else 0)
        burst()
        while time.monotonic() < begins_s:
            burst()
        with bragg.scope("burst"):
            lasts_s = harness.seconds(burst)
    profile = session.profile()
    tree = profile.tree
    is_burst = np.array([tree.frames.name[frame] == "burst" for frame in tree.frame])
    counters = profile.meta.get("counters", {})
    n_samples = sum(device.get("samples", 0) for device in counters.get("devices", {}).values())
    return lasts_s, float(profile.inclusive("gpu_time")[is_burst].sum()), n_samples


def slowdown(burst: Callable[[], None], path: Path, budget_s: float) -> list[dict[str, Any]]:
    """A row of each kind of sampling, from as many rounds as the time allows."""
    rounds: list[dict[str, tuple[float, float, int]]] = []
    deadline = time.monotonic() + budget_s
    while len(rounds) < _LEAST_ROUNDS or time.monotonic() < deadline:
        order = list(_SAMPLING) if len(rounds) % 2 else list(reversed(_SAMPLING))
        rounds.append({name: timed(burst, path, _SAMPLING[name]) for name in order})
    rows = []
    for name in _SAMPLING:
        wall, gpu_time = ([(each["none"][part], each[name][part]) for each in rounds] for part in (0, 1))
        rows.append(
            {
                "sampled": name,
                **harness.ratio_row(harness.Ratio.of(wall)),
                "gpu_time_median": round(harness.Ratio.of(gpu_time).median, 5),
                "least_samples": min(each[name][2] for each in rounds),
            }
        )
    return rows[1:]


def main() -> None:
    """Measure one program (as a child) or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--seconds", type=float, default=30, help="time for the rounds of one program")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--program", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.program:
        import bragg
        from contenders import scratch_directory

        with scratch_directory() as directory:
            # With a session around them those within attach nothing.
            outer = bragg.start(f"{directory}/outer.bragg", **_RECORDED, telemetry_hz=0)
            rows = slowdown(burst_of(told.program), Path(directory, "inner.bragg"), told.seconds)
            outer.stop(save=False)
        print(json.dumps({"rows": rows}))
        return
    found: list[dict[str, Any]] = []
    for program in told.programs.split(","):
        arguments = [__file__, "--program", program, "--seconds", str(told.seconds)]
        result = harness.in_child(arguments, 20 * told.seconds)
        found += [{"program": program, **row} for row in result.get("rows", [result])]
        print(json.dumps(found[-len(_SAMPLING) + 1 :]), flush=True)
    harness.report("counters_slowdown", found, told.out)


if __name__ == "__main__":
    main()
