"""How often `bragg diff --gate` calls a program slower than itself, and how many slowdowns of 3 % it finds.

Records a program and the same with 3 % more steps in turn, then forms comparisons from the recordings:

- simulated: from the runs of the one program, drawn at random, half of them made slower by 3 %;
- consecutive: neighbouring runs as two sets, one after the other, as two jobs record them;
- in turn: every other run of one program; and of the two programs, the real slowdown.

The noise of this machine is part of the result: see `deviation`. Host time is also judged as the gate does it, without
what other programs took of it. With `--gpu` (needs PyTorch) the gate is
GPU time, and each recording is a session of one process, which saves starting PyTorch 80 times.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import bragg
import harness
from bragg import formats
from bragg.analyze.comparing.disturbance import taken_from
from bragg.analyze.comparing.repeats import noise_of, spread_of

SLOWER = 1.03
ALONE = " without what others took"
N_SIMULATED = 2_000
CPU_PROGRAM = """
import sys
def forward(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total
def step():
    return forward(3000)
for _ in range(int(sys.argv[1])):
    step()
"""
Values = Any


def recorded(directory: Path, steps: int, number: int, name: str) -> Path:
    """One recording of the program."""
    file = directory / f"{name}-{number}.bragg"
    command = [sys.executable, "-m", "bragg", "run", "--no-summary", "-o", str(file), "program.py", str(steps)]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
    return file


def numbers(n_pairs: int, seconds: float) -> Iterator[int]:
    """So many numbers of pairs, or fewer if the time is used up."""
    deadline = time.monotonic() + seconds
    yield from itertools.takewhile(lambda _: time.monotonic() < deadline, range(n_pairs))


def totals_on_cpu(n_pairs: int, seconds: float, steps: int) -> Values:
    """Host time in ns of each pair of recordings, each a process, and what others took of it: [n_pairs, 2, 2]."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "program.py").write_text(CPU_PROGRAM)
        recorded(directory, steps, 0, "warm")
        files = [
            (recorded(directory, steps, number, "a"), recorded(directory, round(steps * SLOWER), number, "b"))
            for number in numbers(n_pairs, seconds)
        ]
        return np.array([[host_times(formats.load(file)) for file in pair] for pair in files], float)


def host_times(profile: bragg.Profile) -> tuple[float, float]:
    """Host time of a recording in ns, and how much of it other programs took."""
    total = np.array([profile.total("host_time")])
    taken = taken_from([profile], total, "host_time")
    return total[0], 0.0 if taken is None else taken[0]


def totals_on_gpu(n_pairs: int, seconds: float, steps: int) -> Values:
    """GPU time in ns of each pair of recordings, each a session, of which others took none: [n_pairs, 2, 2]."""
    import torch

    a = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(64, 1024, 1024, device="cuda")

    def total(count: int, directory: str) -> tuple[float, float]:
        with bragg.profile(str(Path(directory, "run.bragg")), force=True):
            for _ in range(count):
                torch.relu(a @ a)
                torch.softmax(x, -1)
            torch.cuda.synchronize()
        return bragg.load(Path(directory, "run.bragg")).total("gpu_time"), 0.0

    with tempfile.TemporaryDirectory() as directory:
        total(steps, directory)
        pairs = [[total(steps, directory), total(round(steps * SLOWER), directory)] for _ in numbers(n_pairs, seconds)]
        return np.array(pairs, float)


def is_slower(before: Values, after: Values, metric: str, *, paired: bool) -> bool:
    """The verdict of `--gate total` on two sets of totals."""
    noise = noise_of(metric.removesuffix(ALONE), "ns", is_undisturbed=metric.endswith(ALONE))
    spread = spread_of(before[:, None], after[:, None], noise, paired=paired)
    return bool(spread.after[0] - spread.before[0] > spread.margin()[0])


def rates(values: Values, slow: Values, metric: str, n_runs: int) -> dict[str, Any]:
    """False alarms and slowdowns found with so many runs in a set."""
    rng = np.random.default_rng(0)
    drawn = [np.split(rng.permutation(values)[: 2 * n_runs], 2) for _ in range(N_SIMULATED)]
    blocks = [np.split(values[i : i + 2 * n_runs], 2) for i in range(len(values) - 2 * n_runs + 1)]
    blocks += [[after, before] for before, after in blocks]
    turns = [
        (values[i : i + 2 * n_runs : 2], values[i + 1 : i + 2 * n_runs : 2])
        for i in range(len(values) - 2 * n_runs + 1)
    ]
    turns += [(after, before) for before, after in turns]
    real = [(values[i : i + n_runs], slow[i : i + n_runs]) for i in range(len(values) - n_runs + 1)]
    in_turn = n_runs > 1

    def share(pairs: Any, paired: bool = False, factor: float = 1.0) -> float:
        return round(float(np.mean([is_slower(x, factor * y, metric, paired=paired) for x, y in pairs])), 4)

    return {
        "metric": metric,
        "runs": n_runs,
        "false_simulated": share(drawn),
        "false_consecutive": share(blocks),
        "false_in_turn": share(turns, in_turn),
        "found_simulated": share(drawn, factor=SLOWER),
        "found_consecutive": share(blocks, factor=SLOWER),
        "found_in_turn": share(turns, in_turn, SLOWER),
        "found_real_in_turn": share(real, in_turn),
        "n_comparisons": [len(drawn), len(blocks), len(turns), len(real)],
    }


def of_normal_noise() -> list[dict[str, Any]]:
    """The same of values with normal noise, which says what a machine has to be like."""
    rng = np.random.default_rng(1)
    rows = []
    for metric, deviation in (("host_time", 0.005), ("host_time", 0.009), ("gpu_time", 0.003), ("gpu_time", 0.006)):
        one, other = (factor * (1 + deviation * rng.standard_normal(2_000)) for factor in (1, SLOWER))
        rows += [{"deviation": deviation, **rates(one, other, metric, n_runs)} for n_runs in (1, 5, 10)]
    return rows


def main() -> None:
    """Record, compare and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40, help="recordings of each of the two programs")
    parser.add_argument("--seconds", type=float, default=3600, help="no pair starts after this time")
    parser.add_argument("--gpu", action="store_true", help="record a GPU program")
    parser.add_argument("--simulated", action="store_true", help="record nothing: values with normal noise")
    parser.add_argument("--steps", type=int, help="steps of the program")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    if arguments.simulated:
        harness.report("diff_gate", of_normal_noise(), arguments.out)
        return
    metric = "gpu_time" if arguments.gpu else "host_time"
    record = totals_on_gpu if arguments.gpu else totals_on_cpu
    recorded = record(arguments.pairs, arguments.seconds, arguments.steps or (400 if arguments.gpu else 1500))
    totals, taken = np.moveaxis(recorded, -1, 0)
    rows = measured(totals, metric)
    if taken.any():
        rows += measured(totals - taken, metric + ALONE)
    harness.report("diff_gate", rows, arguments.out)


def measured(totals: Values, metric: str) -> list[dict[str, Any]]:
    """How recordings of the two programs vary, and what the gate makes of them.

    Args:
        totals: Of each pair, ns: [n_pairs, 2].
        metric: What they are totals of.
    """
    values, slow = totals.T
    noise = {
        "metric": metric,
        "mean_s": round(values.mean() / 1e9, 4),
        "deviation": round(float(values.std() / values.mean()), 5),
        "deviation_of_neighbours": round(float(np.diff(values).std() / values.mean() / np.sqrt(2)), 5),
        "real_slowdown": round(float(np.median(slow / values)) - 1, 5),
        "totals_ms": (totals / 1e6).round(2).tolist(),
    }
    sizes = [n_runs for n_runs in (1, 5, 10) if 2 * n_runs <= len(values)]
    return [noise, *(rates(values, slow, metric, n_runs) for n_runs in sizes)]


if __name__ == "__main__":
    main()
