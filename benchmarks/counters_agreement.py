"""What `bragg run --counters` says of kernels, against ncu: bytes of DRAM, tensor pipe, bound by memory or arithmetic.

Each of the kernels of tests/support/kernel_pairs.py, a copy, products of matrices and attention is launched again and
again, alone, for some tenths of a second under bragg, and a few times under ncu (`--clock-control none --cache-control
none`), whose last launches count. Prints a table.

ncu sees fewer bytes written, by up to 20 MB a launch on an H100. Likely, but not measured: it ends a launch with what
was written last still in the L2 cache. Reads and known traffic are what to compare.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "tests" / "gpu" / "programs" / "counted_kernels.py"

Values = dict[str, Any]

SECONDS = 0.25  # of a kernel under bragg
LAUNCHES = 3  # under ncu
NCU = {
    "gpu__time_duration.sum": "time_ns",
    "dram__bytes_read.sum": "read",
    "dram__bytes_write.sum": "write",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": "tensor",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": "memory_sol",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "compute_sol",
}


def by_bragg(directory: Path, counters: str) -> tuple[list[str], list[Values]]:
    """Of each kernel what bragg says of a launch; and their names."""
    import bragg
    from bragg.analyze.roofline import roofline

    output = directory / f"{counters}.bragg"
    run = [sys.executable, "-m", "bragg", "run", "-o", str(output), "--force", f"--counters={counters}", str(PROGRAM)]
    done = subprocess.run([*run, str(SECONDS), "1"], capture_output=True, text=True, check=True)
    names = json.loads(done.stdout.strip().splitlines()[-1])
    profile = bragg.load(output)
    bounds = {point.name: point.bound for point in roofline(profile).points}
    return names, [_of_work(profile, number, bounds) for number in range(len(names))]


def _of_work(profile: Any, number: int, bounds: dict[str, str | None]) -> Values:
    tree = profile.tree
    scope = f"work {number}"
    inside = [
        node for node in range(len(tree)) if scope in {tree.frames.name[tree.frame[up]] for up in tree.path(node)}
    ]
    kernels = [node for node in inside if profile.own("gpu_time")[node] > 0]
    main = max(kernels, key=lambda node: profile.own("gpu_time")[node])
    time_ns, count = (float(profile.own(metric)[main]) for metric in ("gpu_time", "gpu_count"))
    told = {"time_ns": time_ns / count, "launches": count, "bound": bounds.get(tree.frames.name[tree.frame[main]])}
    for name, metric in (("read", "dram_read_bytes"), ("write", "dram_write_bytes"), ("tensor", "tensor_active_time")):
        if metric not in profile.metrics or not _is_counted(profile, main, metric):
            continue
        scale = 100 / time_ns if name == "tensor" else 1 / count
        told[name] = float(profile.own(metric)[main]) * scale
        told[f"{name}_error"] = float(profile.own(f"{metric}_error")[main]) * scale
    return told


def _is_counted(profile: Any, node: int, metric: str) -> bool:
    group = "tensor_active" if metric.startswith("tensor") else "dram"
    return bool(profile.own(f"{group}_counted_time")[node] > 0)


def by_ncu(ncu: str, metrics: Mapping[str, str] = NCU) -> dict[int, dict[str, float]]:
    """Of each kernel what ncu says: medians of its last launches, of the kernel of most time."""
    command = [ncu, "--clock-control", "none", "--cache-control", "none", "--csv", "--page", "raw", "--nvtx"]
    command += ["--print-units", "base", "--metrics", ",".join(metrics)]
    run = [*command, sys.executable, str(PROGRAM), "0", str(LAUNCHES)]
    lines = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    start = next(row for row, line in enumerate(lines) if line.startswith('"ID"'))
    rows = list(csv.DictReader(lines[start:]))[1:]  # the second line has units
    by_work: dict[int, dict[str, list[dict[str, float]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        ranges = [found for value in row.values() if (found := re.search(r"work (\d+)", str(value)))]
        if not ranges:
            continue  # a tensor is filled
        number = int(ranges[0][1])
        values = {short: float(row[name].replace(",", "")) for name, short in metrics.items() if row.get(name)}
        by_work[number][row["Kernel Name"]].append(values)
    return {number: _main_kernel(kernels) for number, kernels in by_work.items()}


def _main_kernel(kernels: dict[str, list[dict[str, float]]]) -> dict[str, float]:
    launches = max(kernels.values(), key=lambda rows: sum(row["time_ns"] for row in rows))[1:] or [{}]
    return {name: statistics.median(row[name] for row in launches) for name in launches[-1]}


def compare(
    names: list[str], of_bragg: list[dict[str, Any]], of_ncu: dict[int, dict[str, float]]
) -> list[dict[str, Any]]:
    """A row for each kernel."""
    rows = []
    for number, (name, ours) in enumerate(zip(names, of_bragg, strict=True)):
        theirs = of_ncu[number]
        row: Values = {"kernel": name, "us": ours["time_ns"] / 1000, "ncu_us": theirs["time_ns"] / 1000}
        total = theirs["read"] + theirs["write"]
        if "read" in ours and "write" in ours:
            row["dram_off_percent"] = 100 * ((ours["read"] + ours["write"]) / total - 1)
            row["mb"] = (ours["read"] + ours["write"]) / 1e6
            row["error_mb"] = (ours["read_error"] + ours["write_error"]) / 1e6
            row["read_off_percent"] = 100 * (ours["read"] / max(theirs["read"], 1.0) - 1)
        if "tensor" in ours:
            row["tensor"], row["ncu_tensor"] = ours["tensor"], theirs["tensor"]
        row["bound"] = ours["bound"]
        row["ncu_bound"] = "memory" if theirs["memory_sol"] > theirs["compute_sol"] else "compute"
        rows.append(row)
    return rows


def _text(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--counters", nargs="+", default=["default", "dram"])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    ncu = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    with tempfile.TemporaryDirectory() as scratch:
        found = {counters: by_bragg(Path(scratch), counters) for counters in arguments.counters}
    of_ncu = by_ncu(ncu)
    rows = {counters: compare(names, ours, of_ncu) for counters, (names, ours) in found.items()}
    for counters, table in rows.items():
        print(f"--counters {counters}")
        for row in table:
            print("  " + ", ".join(f"{name} {_text(value)}" for name, value in row.items()))
    if arguments.out:
        arguments.out.write_text(json.dumps({"rows": rows, "ncu": of_ncu}, indent=1) + "\n")


if __name__ == "__main__":
    main()
