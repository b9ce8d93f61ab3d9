"""What clocks inside of kernels cost: launches without and with them in turn, and whether results stay equal.

The pairs are those of `bragg run --instrument`, of kernels of `tests/support/timed_kernels.py`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import bragg
import harness

PROGRAM = Path(__file__).parents[1] / "tests" / "gpu" / "programs" / "timed_kernel.py"
KERNELS = ("matmul_scoped", "matmul_tma", "matmul_tma8", "matmul", "matmul8", "softmax", "attention", "copy")
LIMIT_S = 120


def row_of(kernel: str, directory: str, budget: str) -> dict[str, Any]:
    """The cost of clocks in one kernel, with the levels that were refused."""
    output = f"{directory}/{kernel}.bragg"
    command = [sys.executable, "-m", "bragg", "run", "--no-summary", "--instrument=.", "-o", output]
    command += ["--instrument-budget", budget]
    done = subprocess.run([*command, str(PROGRAM), kernel], capture_output=True, text=True, timeout=LIMIT_S, check=True)
    profile = bragg.load(output)
    (told,) = profile.run.inside_kernels
    (row,) = profile.meta["inside_kernels"]
    covered = max(told.covered_cycles, 1)
    return {
        "kernel": kernel,
        "level": told.level,
        "time_ratio": None if told.cost is None else round(1 + told.cost, 4),
        "pairs": told.pairs,
        "plain_us": round(told.plain_ns / 1e3, 1),
        "registers": f"{told.registers[0]} to {told.registers[1]}",
        "span_of_time": round(told.span_ns / max(told.timed_ns, 1), 3),
        "waits": round(sum(each.total for each in told.stretches if each.is_wait) / covered, 3),
        "stretches": len(told.stretches),
        "read_cycles": told.read_cycles,
        "clock_share": round(told.clock_cycles / covered, 4),
        "refused": "; ".join(map(_refused, row["refused"])),
        "results": next((line for line in done.stdout.splitlines() if "results are equal" in line), ""),
    }


def _refused(level: dict[str, Any]) -> str:
    cost = f" {level['timed_ns'] / level['plain_ns']:.3f}" if level["why"] == "cost" else ""
    return f"{level.get('level', '')}: {level['why']}{cost}"


def main() -> None:
    """Measure all kernels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--budget", default="5%", help="share by which a launch may become longer")
    parser.add_argument("kernels", nargs="*", default=KERNELS, help="of tests/support/timed_kernels.py")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        rows = [row_of(kernel, directory, arguments.budget) for kernel in arguments.kernels]
    harness.report("clocks", rows, arguments.out)


if __name__ == "__main__":
    main()
