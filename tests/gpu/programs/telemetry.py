"""Matrix products for some seconds; or the same bursts with and without telemetry, in turn.

Usage: telemetry.py SECONDS, or telemetry.py pairs COUNT HZ: prints a JSON object with the ratio of each pair of bursts,
bound by the GPU and by the host; or telemetry.py thread HZ: prints the share of a core that the sampling thread takes.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable

import torch

import bragg


def large(side: int = 8192) -> Callable[[], None]:
    """Bursts of some tenths of a second that the GPU bounds."""
    matrix = torch.randn(side, side, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(matrix)

    def burst() -> None:
        for _ in range(150):
            torch.matmul(matrix, matrix, out=out)
        torch.cuda.synchronize()

    return burst


def small() -> Callable[[], None]:
    """Bursts as long that the host bounds."""
    vector = torch.zeros(256, device="cuda")

    def burst() -> None:
        for _ in range(30_000):
            vector.add_(1)
        torch.cuda.synchronize()

    return burst


def timed(burst: Callable[[], None], hz: float | None) -> float:
    """Seconds of a burst, with telemetry in a session of its own."""
    session = bragg.start("burst.bragg", backend="cuda", context="shadow", telemetry_hz=hz)
    with bragg.scope("burst"):
        burst()  # what a session takes to begin
        begin = time.perf_counter()
        burst()
        lasts = time.perf_counter() - begin
    session.stop(save=False)
    return lasts


def ratios(burst: Callable[[], None], count: int, hz: float) -> list[float]:
    """Time with telemetry over that without, of pairs in alternating order."""
    found = []
    for pair in range(count):
        order = (hz, None) if pair % 2 else (None, hz)
        seconds = {rate: timed(burst, rate) for rate in order}
        found.append(seconds[hz] / seconds[None])
    return found


def run_for(burst: Callable[[], None], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        burst()


def thread_share(burst: Callable[[], None], hz: float) -> float:
    """CPU time of the sampling thread by the time, without its begin and the borders of phases, which cost alike."""
    session = bragg.start("thread.bragg", backend="cuda", context="shadow", telemetry_hz=hz)
    run_for(burst, 2)
    taken_ns, span_ns = [], []
    for phase, seconds in enumerate((1, 9, 3)):
        run_for(burst, seconds)
        session.advance_phase()
        told = session.phase_profile(phase).meta["telemetry"]["sampling"]
        taken_ns.append(told["cpu_ns"])
        span_ns.append(told["span_ns"])
    session.stop(save=False)
    (long, short), (long_ns, short_ns) = (
        [later - sooner for sooner, later in itertools.pairwise(row)] for row in (taken_ns, span_ns)
    )
    return (long - short) / (long_ns - short_ns)


if sys.argv[1] == "thread":
    print(thread_share(large(), float(sys.argv[2])))
elif sys.argv[1] == "pairs":
    outer = bragg.start("outer.bragg", backend="cuda", context="shadow")  # so that sessions within attach nothing
    count, hz = int(sys.argv[2]), float(sys.argv[3])
    result = {"gpu": ratios(large(), count, hz), "host": ratios(small(), count, hz)}
    outer.stop(save=False)
    print(json.dumps(result))
else:
    run_for(large(), float(sys.argv[1]))
