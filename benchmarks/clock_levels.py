"""What each level of clocks costs a kernel: launches without and with it in turn, and whether results stay equal.

`clocks.py` shows the level that a recording chooses; here every level is measured, whatever it costs. The last row is
what measuring a launch costs the host.
"""

from __future__ import annotations

import argparse
import os
import re
import runpy
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
import triton

import harness
from bragg.code.instrument.assembling import assemble, find_ptxas, target_of
from bragg.code.instrument.blocks import read_kernel
from bragg.code.instrument.clocked import Clocked, Tools, clocked, clocked_in_part
from bragg.code.instrument.rewriting import CONTROL, CONTROL_BYTES
from bragg.code.instrument.storing import IN_GLOBAL_MEMORY, Store
from bragg.code.sass.disassembler import find_disassembler
from bragg.record.instrument.buffers import Buffers, Plan, plan
from bragg.record.instrument.compiled_kernel import partition_warps, ptxas_options, source_scopes
from bragg.record.instrument.driver import Driver
from bragg.record.instrument.levels import Level, levels_of
from bragg.record.instrument.shared_room import shared_room
from bragg.record.instrument.summing import summed
from bragg.record.instrument.trial import Trial

PROGRAM = Path(__file__).parents[1] / "tests" / "gpu" / "programs" / "timed_kernel.py"
KERNELS = (
    *("matmul_scoped", "matmul_scoped8", "matmul_scoped_pointers", "matmul_scoped_pointers8"),
    *("matmul_tma8", "matmul", "matmul8", "softmax", "attention"),
)
BLOCKS = {"softmax": 8192, "attention": 128}
BUFFER_BYTES = 64 << 20
PAIRS = 20
TRIALS = 100
ASSEMBLE_WITHIN_S = 60


class Bench:
    """A kernel, and what launches it.

    Args:
        name: Of `tests/support/timed_kernels.py`.
        in_shared: Readings are kept in shared memory, if it has room.
        pairs: Of launches that are compared, of each level.
    """

    def __init__(self, name: str, *, in_shared: bool = False, pairs: int = PAIRS) -> None:
        self._in_shared, self._pairs = in_shared, pairs
        self._launch, self._result = runpy.run_path(str(PROGRAM))["launcher"](name)
        self._compiled: Any = self._launch()
        self._first = self._result.clone()
        self._plain = self._compiled.function
        self._driver = Driver()
        self._warps = self._compiled.metadata.num_warps
        self._buffers = Buffers(self._driver, plan(BLOCKS.get(name, 4096), self._warps, BUFFER_BYTES))

    def rows(self, levels: str) -> list[dict[str, Any]]:
        """One for each level whose name matches a regular expression."""
        scopes = source_scopes(self._compiled, read_kernel(self._compiled.asm["ptx"]))
        return [self._row(level) for level in levels_of(scopes) if re.search(levels, level.name)]

    def _row(self, level: Level) -> dict[str, Any]:
        made, module, function = self._loaded(level)
        timed = made.instrumented
        own = self._plan(level, function)
        self._driver.write(self._driver.symbol(module, CONTROL), self._buffers.control(own))
        torch.cuda.synchronize()
        times, n_equal = self._times(function)
        told = summed(*self._buffers.read(own), timed, own)
        return {
            "level": level.name,
            "time_ratio": round(median(times[function]) / median(times[self._plain]), 4),
            "plain_us": round(median(times[self._plain]), 1),
            "blocks": own.frame_blocks if timed.frames else 0,
            "warps": len(own.chosen_warps) if timed.frames else 0,
            "passages": sum(each["count"] for each in told.get("segments", ())),
            "registers": made.binary.registers,
            "shared_bytes": timed.store.size_bytes,
            "rest_exact": made.is_rest_exact,
            "damaged": told.get("damaged_warps", 0),
            "results": f"{n_equal} of {2 * self._pairs} are equal",
        }

    def _loaded(self, level: Level) -> tuple[Clocked, int, int]:
        ptx, metadata = self._compiled.asm["ptx"], self._compiled.metadata
        ptxas, kernel = find_ptxas(triton, target_of(ptx), os.environ), read_kernel(ptx)
        tools = Tools(ptxas, ptxas_options(metadata), ASSEMBLE_WITHIN_S, find_disassembler(os.environ))
        plain = assemble(ptxas, ptx, tools.options, ASSEMBLE_WITHIN_S)
        make = clocked_in_part if level.block_shift else clocked
        made = make(kernel, level.selection, plain, tools, self._store(level))
        active = triton.runtime.driver.active
        module, function, *_ = active.utils.load_binary(
            kernel.name, made.binary.cubin, metadata.shared, active.get_current_device()
        )
        return made, module, function

    def _store(self, level: Level) -> Store:
        warps, shared_bytes = self._warps if level.has_all_warps else 1, self._compiled.metadata.shared

        def blocks(more_bytes: int) -> int:
            return self._driver.resident_blocks(self._plain, 32 * self._warps, shared_bytes + more_bytes)

        return (shared_room(warps, blocks) if self._in_shared else None) or IN_GLOBAL_MEMORY

    def _plan(self, level: Level, function: int) -> Plan:
        resident = self._driver.resident_blocks(function, 32 * self._warps, self._compiled.metadata.shared)
        first_warps = partition_warps(self._compiled.asm["ttgir"], self._warps)
        return level.planned(self._buffers.plan, resident, first_warps)

    def _times(self, function: int) -> tuple[dict[int, list[float]], int]:
        """Times of launches in microseconds by function, without those of the first pairs, and how many were equal."""
        times: dict[int, list[float]] = {self._plain: [], function: []}
        n_equal = 0
        for pair in range(2 * self._pairs):
            for each in (self._plain, function) if pair % 2 else (function, self._plain):
                self._compiled.function = each
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                self._result.zero_()
                begin.record()
                self._launch()
                end.record()
                end.synchronize()
                if pair >= self._pairs:  # before, the GPU's clock settles
                    times[each].append(begin.elapsed_time(end) * 1e3)
                is_equal = torch.equal(self._first, self._result)
                n_equal += is_equal and each == function
        self._compiled.function = self._plain
        return times, n_equal


def host_us() -> float:
    """What measuring a launch takes on the host: events around it, and whether its stream is being captured."""
    driver = Driver()
    ready = driver.write(driver.zeros(CONTROL_BYTES), bytes(CONTROL_BYTES))
    torch.cuda.synchronize()
    took_s = []
    for _ in range(TRIALS):
        trial = Trial(driver, ready)
        while not trial.is_full:
            begun_s = time.perf_counter()
            if not driver.is_capturing(0):
                with driver.relaxed():
                    trial.begin(0)
                trial.end(0)
            took_s.append(time.perf_counter() - begun_s)
        torch.cuda.synchronize()  # each launch is held for longer than it takes the host
    return median(took_s) * 1e6


def main() -> None:
    """Measure all kernels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--shared", action="store_true", help="keep readings in shared memory, if it has room")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="launches without and with clocks, of each level")
    parser.add_argument("--levels", default="", help="a regular expression: levels whose name it finds")
    parser.add_argument("kernels", nargs="*", default=KERNELS, help="of tests/support/timed_kernels.py")
    arguments = parser.parse_args()
    benches = (Bench(name, in_shared=arguments.shared, pairs=arguments.pairs) for name in arguments.kernels)
    rows = [
        {"kernel": name, **row}
        for name, bench in zip(arguments.kernels, benches, strict=True)
        for row in bench.rows(arguments.levels)
    ]
    host: dict[str, Any] = {"kernel": "any", "level": "a launch that is measured", "host_us": round(host_us(), 1)}
    harness.report("clock_levels", [*rows, host], arguments.out)


if __name__ == "__main__":
    main()
