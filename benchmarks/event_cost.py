"""What an event inside of a kernel costs a warp: the cycles that 1 to 64 events add to it, and a line through them.

An event is a stretch with its two readings, stored. The kernel has one in each turn of its loop. It is launched with
all clocks and with those at its start and end alone: both tell how long each warp took.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton

import harness
from bragg.code.instrument.assembling import assemble, find_ptxas, target_of
from bragg.code.instrument.blocks import Activity, read_kernel
from bragg.code.instrument.readings import Warps, read_headers
from bragg.code.instrument.rewriting import CONTROL, instrument
from bragg.code.instrument.segments import Activities
from bragg.record.instrument.buffers import Buffers, plan
from bragg.record.instrument.driver import Driver
from triton_kernels import events

EVENTS = (1, 2, 4, 8, 16, 24, 32, 48, 64)
BLOCKS, WARPS, BLOCK = 128, 4, 128
LAUNCHES = 20
LONG = 200_000
ASSEMBLE_WITHIN_S = 60


class Launcher:
    """Launches the kernel with clocks at some of its statements, and reads the headers of its warps."""

    def __init__(self, compiled: Any, wanted: frozenset[Activity], buffers: Buffers, driver: Driver) -> None:
        ptx = compiled.asm["ptx"]
        timed = instrument(read_kernel(ptx), Activities(wanted))
        ptxas = find_ptxas(triton, target_of(ptx), os.environ)
        binary = assemble(ptxas, timed.text, [], ASSEMBLE_WITHIN_S)
        active = triton.runtime.driver.active
        module, self._function, *_ = active.utils.load_binary(
            compiled.name, binary.cubin, compiled.metadata.shared, active.get_current_device()
        )
        self._compiled, self._buffers = compiled, buffers
        driver.write(driver.symbol(module, CONTROL), buffers.control(buffers.plan))
        torch.cuda.synchronize()

    def warps(self, x: torch.Tensor, n: int) -> Warps:
        """Of one launch."""
        self._compiled.function = self._function
        events[(BLOCKS,)](x, n, count=BLOCK, num_warps=WARPS)
        torch.cuda.synchronize()
        return read_headers(self._buffers.read(self._buffers.plan)[0])

    def cycles(self, x: torch.Tensor, n: int) -> float:
        """Of a warp: the median of all launches and warps."""
        found = [self.warps(x, n) for _ in range(LAUNCHES)]
        return float(np.median([each.end - each.start for each in found[1:]]))


def main() -> None:
    """Measure, and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    x = torch.zeros(BLOCKS * BLOCK, device="cuda")
    compiled = events[(BLOCKS,)](x, 1, count=BLOCK, num_warps=WARPS)
    torch.cuda.synchronize()
    driver = Driver()
    buffers = Buffers(driver, plan(BLOCKS, WARPS, 64 << 20))
    plain, clocked = (Launcher(compiled, wanted, buffers, driver) for wanted in (frozenset(), frozenset(Activity)))
    long = plain.warps(x, LONG)
    ghz = float((long.end - long.start).sum() / (long.end_ns - long.start_ns).sum())
    extra_ns = np.array([(clocked.cycles(x, n) - plain.cycles(x, n)) / ghz for n in EVENTS])
    slope, base = np.polyfit(EVENTS, extra_ns, 1)
    left = extra_ns - (slope * np.array(EVENTS) + base)
    r2 = 1 - (left**2).sum() / ((extra_ns - extra_ns.mean()) ** 2).sum()
    rows = [
        {"events": n, "extra_ns": round(float(each), 1), "line_ns": round(float(slope * n + base), 1)}
        for n, each in zip(EVENTS, extra_ns, strict=True)
    ]
    told: dict[str, Any] = {"events": "each", "extra_ns": round(float(slope), 2), "r2": round(float(r2), 4)}
    told |= {"ghz": round(ghz, 3), "read_cycles": int(np.median(long.read_cycles))}
    harness.report("event_cost", [*rows, told], arguments.out)


if __name__ == "__main__":
    main()
