"""Two GPUs of one host: what recording costs a DDP job, and whether `bragg ranks` names the rank that was made late.

    python benchmarks/two_gpus.py [cost|planted|programs ...] [--plant NAME] [--out FILE]

`cost` trains GPT-2 by DDP, with 8 sequences a GPU and with 32, in bursts of steps: without bragg, and with what
`bragg run` records by default and as a timeline, in turns within one job; a ratio is that of a burst to the one without
of the same round. `planted` runs healthy jobs, and makes rank 1 late in six ways by a third of their step. `programs`
records FSDP, a tensor-parallel matmul and a shard_map of JAX. No card's setting changes.

Hosts that others share make ranks late by themselves, so what is named is compared with the clock that both ranks have,
at which `bragg ranks` does not look. A job is right if a rank that was made late is named with the cause, and if by the
clock each named rank was late in the named steps by what is said, within `ALLOWED`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import harness
from two_gpus_rank import RANKS, STEPS_OF_BURST

LIMIT_S = 120
LEAST_LATE_S, LATE_SHARE = 0.008, 0.35  # of the step of a healthy job
ALLOWED = 0.2  # of what a rank costs
# By name the cause that `bragg ranks` must give.
PLANTED = {
    "sleep": "host",
    "since": "host",
    "once": "host",
    "input": "input",
    "work": "more work",
    "start": "late start",
}
RANK_PROGRAM = str(Path(__file__).with_name("two_gpus_rank.py"))
PROGRAMS = ("fsdp", "tensor", "jax")


def main() -> None:
    """Measure, and write the result where it is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["cost", "planted", "programs"])
    parser.add_argument("--plant", action="append", choices=PLANTED, help="Run these jobs of `planted` alone.")
    parser.add_argument("--keep", type=Path, help="Keep the jobs of `planted` and `programs` here.")
    parser.add_argument("--out", type=Path, help="JSON file to write.")
    options = parser.parse_args()
    parts: dict[str, Callable[[Path], Iterator[dict[str, Any]]]] = {
        "cost": costs,
        "planted": partial(planted, plants=options.plant or list(PLANTED)),
        "programs": programs,
    }
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        directory = options.keep or Path(temporary)
        for part in options.parts:
            for row in parts[part](directory):
                rows.append(row)
                print(json.dumps(row), flush=True)
    harness.report("two_gpus", rows, options.out)


def costs(directory: Path) -> Iterator[dict[str, Any]]:
    """How much longer the bursts with bragg take, where the host limits the steps and where the GPU does."""
    for n_batches in (1, 4):
        yield from costs_of(directory, n_batches)


def costs_of(directory: Path, n_batches: int) -> Iterator[dict[str, Any]]:
    """The same by the slower rank of each burst, with so many batches of 8 sequences in a step."""
    bursts = [each["bursts"] for each in told_by("ddp", "", directory, None, bursts_of=n_batches)]
    seconds = {name: [max(pair) for pair in zip(*(rank[name] for rank in bursts), strict=True)] for name in bursts[0]}
    for name, times in seconds.items():
        ratios = sorted(mine / bare for mine, bare in zip(times, seconds["without"], strict=True))
        low, median, high = statistics.quantiles(ratios, n=4)
        yield {
            "case": f"cost, {8 * n_batches} sequences: {name}",
            "step_ms": round(statistics.median(times) / STEPS_OF_BURST * 1e3, 3),
            "ratio": round(median, 4),
            "quartiles": [round(low, 4), round(high, 4)],
            "rounds": len(ratios),
        }


def planted(directory: Path, plants: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Healthy jobs, and jobs whose rank 1 is made late in these ways."""
    step_ms = 0.0
    for number in range(2 if len(plants) > 1 else 1):
        yield (row := recorded_row("ddp", "", directory / f"ddp-healthy-{number}"))
        step_ms = max(step_ms, row.get("step_ms", 0.0))
    late_s = max(LEAST_LATE_S, LATE_SHARE * step_ms / 1e3)
    for plant in plants:
        yield {**recorded_row("ddp", plant, directory / f"ddp-{plant}", late_s), "late_ms": round(late_s * 1e3, 1)}


def programs(directory: Path) -> Iterator[dict[str, Any]]:
    """Healthy jobs of other kinds."""
    for program in PROGRAMS:
        yield recorded_row(program, "", directory / program)


def recorded_row(program: str, plant: str, job: Path, late_s: float = LEAST_LATE_S) -> dict[str, Any]:
    """A recorded job and what `bragg ranks` says of it; why it failed, if it did."""
    case = {"case": f"{program} {plant or 'healthy'}"}
    try:
        found = run(program, plant, job, ["--no-summary", "--force", "--data", "trace"], late_s)
        answer = bragg_json("ranks", job)
    except (subprocess.SubprocessError, RuntimeError) as error:
        return {**case, "is_right": False, "stderr": str(error)}
    named = answer["stragglers"]
    late_ns = late_by_clock(job)
    late_ns[0][-1], late_ns[1][-1] = ((each - min(found["ready_ns"])) for each in found["ready_ns"])
    by_clock = [sum(late_ns[each["rank"]].get(step, 0.0) for step in _steps_by_clock(each)) for each in named]
    causes = [(each["rank"], each["cause"]) for each in named]
    exposed = answer["exposed"] or {"share": None}
    return {
        **case,
        "step_ms": round(found["step_ms"], 3),
        "collectives": answer["n_collectives"],
        "exposed": exposed["share"],
        "bus_gb_s": [round(each["bus_bytes_per_s"] / 1e9, 1) for each in answer["transfers"][:1]],
        "named": [[each["rank"], each["cause"], each["when"], round(each["cost_ns"] / 1e6, 1)] for each in named],
        "by_clock_ms": [round(late / 1e6, 1) for late in by_clock],
        "is_right": (not plant or (1, PLANTED[plant]) in causes)
        and all(abs(late / each["cost_ns"] - 1) < ALLOWED for late, each in zip(by_clock, named, strict=True)),
    }


def _steps_by_clock(named: dict[str, Any]) -> list[int]:
    """The steps as `late_by_clock` numbers them, in which -1 is the way to the first collective."""
    return [-1, *named["steps"][1:]] if named["when"] == "start" else named["steps"]


def late_by_clock(job: Path) -> list[dict[int, float]]:
    """What each of two ranks cost the other in each step beyond what that one cost it, in nanoseconds.

    Of the time by which it came later to a collective, what the other had nothing else to do in.
    """
    from bragg.analyze.ranks.aligned import groups_of
    from bragg.cli.rank_files import read_ranks

    late: list[dict[int, float]] = [defaultdict(float) for _ in range(RANKS)]
    for group in groups_of(sorted(read_ranks([job]).summaries, key=lambda rank: rank.rank)):
        times = group.times(range(RANKS))
        begins_ns = times.end_ns - times.duration_ns
        later_ns = begins_ns[1] - begins_ns[0]
        cost_ns = np.minimum(abs(later_ns), np.where(later_ns > 0, times.exposed_ns[0], times.exposed_ns[1]))
        for step, cost in zip(group.step.tolist(), (np.sign(later_ns) * cost_ns).tolist(), strict=True):
            late[1][step] += cost
            late[0][step] -= cost
    return late


def run(
    program: str, plant: str, job: Path, recorded: list[str] | None, late_s: float = LEAST_LATE_S
) -> dict[str, Any]:
    """Run a program on both GPUs; the median step of the slower rank, and when each came to its first collective."""
    rows = told_by(program, plant, job, recorded, late_s)
    return {"step_ms": max(row["step_ms"] for row in rows), "ready_ns": [row["ready_ns"] for row in rows]}


def told_by(
    program: str,
    plant: str,
    job: Path,
    recorded: list[str] | None,
    late_s: float = LEAST_LATE_S,
    *,
    bursts_of: int = 0,
) -> list[dict[str, Any]]:
    """What each rank of a program on both GPUs says.

    Args:
        program: What the ranks run.
        plant: What makes rank 1 late.
        job: Directory that is written.
        recorded: Options of `bragg run`; None: without it.
        late_s: How late rank 1 is made in each step.
        bursts_of: The ranks measure bursts of steps, with so many batches in each; 0: single steps.
    """
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS), "--standalone"]
    command = [*launcher, RANK_PROGRAM, program, "--plant", plant, "--late-s", str(late_s)]
    if bursts_of:
        command += ["--bursts", "--batches", str(bursts_of)]
    if recorded is not None:
        command = [sys.executable, "-m", "bragg", "run", *recorded, "-o", f"{job}/", "--", *command]
    with tempfile.TemporaryDirectory() as told:
        environ = {**os.environ, "TWO_GPUS_TOLD": told}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr[-2000:]}")
        return [json.loads(path.read_text()) for path in sorted(Path(told).iterdir())]


def bragg_json(verb: str, job: Path) -> dict[str, Any]:
    """What a command says, as JSON."""
    command = [sys.executable, "-m", "bragg", verb, str(job), "--json"]
    answer: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer


if __name__ == "__main__":
    main()
