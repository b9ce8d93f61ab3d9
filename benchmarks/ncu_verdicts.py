"""What `bragg analyze` says of kernels, against ncu: what limits occupancy, tail, sectors, spills, bound.

The kernels are those of `counters_agreement.py`. Bank conflicts, which bragg reads from layouts, are not compared.
Prints a row for each kernel, a share for each verdict, and the whole.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from counters_agreement import LAUNCHES, PROGRAM, SECONDS, by_ncu

METRICS = {
    "gpu__time_duration.sum": "time_ns",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": "memory_sol",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "compute_sol",
    "sm__maximum_warps_per_active_cycle_pct": "occupancy",
    "launch__occupancy_limit_registers": "registers",
    "launch__occupancy_limit_shared_mem": "shared memory",
    "launch__occupancy_limit_warps": "threads",
    "launch__occupancy_limit_blocks": "blocks",
    "launch__waves_per_multiprocessor": "waves",
    "launch__grid_size": "grid",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct": "load_used",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct": "store_used",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "load_sectors",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "store_sectors",
    "smsp__inst_executed_op_local_ld.sum": "local_loads",
}
LIMITS = ("registers", "shared memory", "threads", "blocks")
WASTE = 0.2  # of a wave, as ncu's rule about tails has it
EXCESSIVE = 0.1  # of all sectors, above which ncu's rule about uncoalesced accesses fires
HIGH = 60.0  # % of peak, above which ncu names a bound; below, latency
BALANCED = 10.0  # points, within which it calls compute and memory balanced

Row = dict[str, Any]


def by_bragg(output: Path, counters: str) -> list[Row]:
    """Of each kernel the verdicts, from one recording with counters."""
    from bragg import formats
    from bragg.analyze.causes.evidence import Evidence
    from bragg.analyze.causes.hot_kernels import hot_kernels
    from bragg.analyze.causes.paths import below
    from bragg.analyze.engine import analysis
    from bragg.analyze.occupancy import occupancy
    from bragg.analyze.roofline import roofline

    run = [sys.executable, "-m", "bragg", "run", "-o", str(output), "--force", f"--counters={counters}", str(PROGRAM)]
    done = subprocess.run([*run, str(SECONDS), "1"], capture_output=True, text=True, check=True)
    names: list[str] = json.loads(done.stdout.strip().splitlines()[-1])
    profile = formats.load(output)
    evidence = Evidence(profile)
    # Each is judged, also those with a small share of the time of all, and those that ran before the steady state.
    gpu_ns = np.nan_to_num(profile.own("gpu_time").astype(np.float64))
    evidence.hot_kernels = hot_kernels(profile, gpu_ns, evidence.kernels, evidence.compiled, 0.0)
    bounds = {point.name: point for point in roofline(profile).points}
    hot = {each.name: each for each in evidence.hot_kernels}
    found: dict[str, set[str]] = {}
    for finding in analysis(evidence).findings:
        found.setdefault(finding.kernel, set()).add(finding.rule)
    tree, rows = profile.tree, []
    for number, name in enumerate(names):
        scope = np.array([each == f"work {number}" for each in tree.frames.name], np.bool_)[tree.frame]
        inside = np.flatnonzero(below(profile, scope)).tolist()
        kernel = tree.frames.name[tree.frame[max(inside, key=lambda node: profile.own("gpu_time")[node])]]
        row: Row = {"name": name, "kernel": kernel, "rules": sorted(found.get(kernel, ()))}
        if kernel in hot and hot[kernel].launches:
            launch = hot[kernel].launches[0]
            row["num_sms"], arch = hot[kernel].num_sms, str(hot[kernel].device.get("arch", ""))
            row["occupancy"], row["limit"] = occupancy(
                arch, math.prod(launch.block), launch.registers, launch.shared_bytes
            )
        if kernel in bounds:
            point = bounds[kernel]
            row["bound"] = point.bound or ("latency" if point.is_bound_by_latency else None)
            row["time_ns"] = point.time_ns / float(profile.own("gpu_count")[hot[kernel].nodes].sum())
        rows.append(row)
    return rows


def verdicts(ours: Row, theirs: dict[str, float]) -> dict[str, tuple[object, object]]:
    """Of each question what both say; only what both can answer."""
    told: dict[str, tuple[object, object]] = {}
    rules = set(ours["rules"])
    if ours.get("occupancy") is not None and "occupancy" in theirs:
        least = min(theirs[limit] for limit in LIMITS if limit in theirs)
        limits = {limit for limit in LIMITS if theirs.get(limit) == least}
        same = ours["limit"] in limits or (not ours["limit"] and theirs["occupancy"] > 99.9)
        told["limit of occupancy"] = (ours["limit"], ours["limit"] if same else "/".join(sorted(limits)))
        told["occupancy"] = (round(100 * ours["occupancy"]), round(theirs["occupancy"]))
    if ours.get("bound"):
        told["bound"] = (ours["bound"], _bound(ours, theirs, 1.0))
        told["bound at the pace of the run"] = (
            ours["bound"],
            _bound(ours, theirs, theirs["time_ns"] / ours["time_ns"]),
        )
    if "<" not in ours["kernel"] or "::" in ours["kernel"]:
        return told  # not of Triton: rules about code do not judge
    waves = theirs.get("waves", 0.0)
    has_tail = waves > 1 and 1 - waves / math.ceil(waves) >= WASTE
    told["tail or few blocks"] = (
        bool(rules & {"tail-wave", "few-blocks"}),
        has_tail or theirs["grid"] < ours.get("num_sms", 0),
    )
    told["uncoalesced"] = (bool(rules & {"uncoalesced-access", "narrow-access"}), _excessive(theirs) > EXCESSIVE)
    told["spills"] = ("register-spills" in rules, theirs.get("local_loads", 0) > 0)
    return told


def _bound(ours: Row, theirs: dict[str, float], pace: float) -> object:
    """What ncu calls the bound; ours where it calls both balanced.

    Args:
        ours: Ours.
        theirs: Shares that units are busy, in %, of the launches that ncu took.
        pace: Duration of those by that of ours. ncu takes a launch alone, among its own copies of memory, and at the
            clock of an idle GPU: the units are as long busy, of another duration.
    """
    memory, compute = theirs["memory_sol"] * pace, theirs["compute_sol"] * pace
    bound = "latency" if max(memory, compute) < HIGH else "memory" if memory > compute else "compute"
    is_either = bound != "latency" and abs(memory - compute) < BALANCED and ours["bound"] != "latency"
    return ours["bound"] if is_either else bound


def _excessive(theirs: dict[str, float]) -> float:
    """Share of the sectors of global memory that move although their bytes would fit into fewer."""
    ways = [way for way in ("load", "store") if theirs.get(f"{way}_used", 0) > 0]
    sectors = {way: theirs.get(f"{way}_sectors", 0.0) for way in ways}
    total = sum(sectors.values())
    return sum(count * (1 - theirs[f"{way}_used"] / 100) for way, count in sectors.items()) / total if total else 0.0


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--counters", default="default,units")
    parser.add_argument(
        "--ncu", type=Path, help="results of an earlier run on the same kind of GPU: its figures of ncu"
    )
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        of_bragg = by_bragg(Path(scratch) / "kernels.bragg", arguments.counters)
    if arguments.ncu:
        kept = json.loads(arguments.ncu.read_text())["kernels"]
        of_ncu = {number: row["ncu"] for number, row in enumerate(kept)}
    else:
        of_ncu = by_ncu(shutil.which("ncu") or "/usr/local/cuda/bin/ncu", METRICS)
    asked: dict[str, list[bool]] = {}
    rows = []
    for number, ours in enumerate(of_bragg):
        if number not in of_ncu:
            print(f"{ours['name']}: ncu says nothing")
            continue
        told = verdicts(ours, of_ncu[number])
        wrong = {question: pair for question, pair in told.items() if pair[0] != pair[1]}
        for question in told:
            asked.setdefault(question, []).append(question not in wrong)
        rows.append({**ours, "ncu": of_ncu[number], "wrong": {name: list(pair) for name, pair in wrong.items()}})
        print(
            f"{ours['name']}: {len(told) - len(wrong)} of {len(told)}",
            *(f"{name} {pair}" for name, pair in wrong.items()),
        )
    shares = {question: f"{sum(right)} of {len(right)}" for question, right in asked.items()}
    right = sum(sum(each) for each in asked.values()), sum(len(each) for each in asked.values())
    print(json.dumps({"verdicts": shares, "all": f"{right[0]} of {right[1]}", "launches": LAUNCHES}, indent=1))
    if arguments.out:
        arguments.out.write_text(json.dumps({"verdicts": shares, "kernels": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
