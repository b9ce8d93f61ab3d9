"""How much slower programs become while counters and telemetry sample: `python benchmarks/counters_slowdown.py`.

Pairs of bursts in one recorded process, in alternating order: with a session that samples and with one that does not.
Sampling begins a second after its session, so the program runs for that long before a burst is timed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

import harness

PROGRAMS = ("gpt2_small", "dynamic_net", "copy", "matmul")
_SAMPLING_BEGINS_S = 1.6
_COPIED_BYTES, _SIDE = 1 << 30, 8192
_BURST_S = 0.5
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
    torch.cuda.synchronize()
    once_s = harness.seconds(lambda: (launch(), torch.cuda.synchronize()))
    count = max(int(_BURST_S / once_s), 1)

    def burst() -> None:
        for _ in range(count):
            launch()
        torch.cuda.synchronize()

    return burst


def timed(burst: Callable[[], None], path: Path, options: dict[str, Any]) -> tuple[float, int]:
    """Seconds of a burst, and samples of counters that were taken."""
    import bragg

    with bragg.profile(
        str(path), backend="cuda", context="shadow", framework="off", data="trace", **options
    ) as session:
        begins_s = time.monotonic() + _SAMPLING_BEGINS_S
        while time.monotonic() < begins_s:
            burst()
        lasts_s = harness.seconds(burst)
    counters = session.profile().meta.get("counters", {})
    return lasts_s, sum(device.get("samples", 0) for device in counters.get("devices", {}).values())


def slowdown(burst: Callable[[], None], path: Path, options: dict[str, Any], budget_s: float) -> dict[str, Any]:
    """Of as many pairs as the time allows."""
    samples: list[int] = []

    def sampled() -> float:
        lasts_s, n_samples = timed(burst, path, options)
        samples.append(n_samples)
        return lasts_s

    found = harness.alternate(lambda: timed(burst, path, {"telemetry_hz": 0})[0], sampled, budget_s=budget_s)
    return {**harness.ratio_row(harness.Ratio.of(found)), "least_samples": min(samples)}


def main() -> None:
    """Measure one program (as a child) or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--seconds", type=float, default=20, help="time for the pairs of one program")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--counters", default="default", help="empty: telemetry alone")
    parser.add_argument("--hz", type=float, default=10, help="of telemetry")
    parser.add_argument("--program", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.program:
        import bragg
        from contenders import scratch_directory

        with scratch_directory() as directory:
            # With a session around them those within attach nothing.
            outer = bragg.start(
                f"{directory}/outer.bragg", backend="cuda", context="shadow", data="trace", telemetry_hz=0
            )
            options = {"counters": told.counters, "telemetry_hz": told.hz}
            row = slowdown(burst_of(told.program), Path(directory, "inner.bragg"), options, told.seconds)
            outer.stop(save=False)
        print(json.dumps(row))
        return
    rows = []
    arguments = ["--counters", told.counters, "--hz", str(told.hz), "--seconds", str(told.seconds)]
    for program in told.programs.split(","):
        result = harness.in_child([__file__, "--program", program, *arguments], 20 * told.seconds)
        rows.append({"program": program, "counters": told.counters, "telemetry_hz": told.hz, **result})
        print(json.dumps(rows[-1]), flush=True)
    harness.report("counters_slowdown", rows, told.out)


if __name__ == "__main__":
    main()
