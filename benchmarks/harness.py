"""What every benchmark needs: alternating measurement, child processes, a result that says where it was measured."""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

# By name how many kernels there were, and their time in ns.
Times = dict[str, tuple[int, float]]

PACKAGES = ("bragg", "torch", "triton", "transformers", "timm", "numpy")
FAKES = Path(os.environ.get("BRAGG_FAKES_DIR", Path(__file__).parents[1] / "build" / "native" / "fakes"))


@dataclass(frozen=True)
class Ratio:
    """What a contender costs, from pairs of neighbouring bursts without and with it.

    Attributes:
        rounds: Number of pairs.
        without_s: Median burst without the contender.
        with_s: Median burst with it.
        median: Median over the pairs of with / without; neighbours share the machine's state of the moment.
        low: Lower quartile of the same.
        high: Upper quartile of the same.
    """

    rounds: int
    without_s: float
    with_s: float
    median: float
    low: float
    high: float

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, float]]) -> Ratio:
        """Sum up pairs of (seconds without, seconds with)."""
        ratios = [with_s / without_s for without_s, with_s in pairs]
        quartiles = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
        without_s, with_s = (statistics.median(column) for column in zip(*pairs, strict=True))
        return cls(len(pairs), without_s, with_s, quartiles[1], quartiles[0], quartiles[2])


def alternate(
    without: Callable[[], float], with_contender: Callable[[], float], *, budget_s: float, min_rounds: int = 3
) -> list[tuple[float, float]]:
    """Measure pairs until the time is used up, the order within a pair swapping each round so that a drift cancels.

    Args:
        without: Runs one burst and gives its seconds.
        with_contender: The same with the contender attached.
        budget_s: No new pair starts after this time.
        min_rounds: Pairs that are measured in any case.
    """
    pairs: list[tuple[float, float]] = []
    deadline = time.monotonic() + budget_s
    while len(pairs) < min_rounds or time.monotonic() < deadline:
        if len(pairs) % 2:
            with_s = with_contender()
            pairs.append((without(), with_s))
        else:
            pairs.append((without(), with_contender()))
    return pairs


def seconds(function: Callable[[], object]) -> float:
    """Wall-clock time of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def cpu_seconds(argv: Sequence[str | Path]) -> float:
    """CPU time of a Python process, in user and system mode; modules stay compiled, as for users."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *map(str, argv)], check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def in_child(argv: Sequence[str | Path], timeout_s: float) -> dict[str, Any]:
    """Run a Python script that prints a JSON object on its last line; a failure is told in the field `error`."""
    command = [sys.executable, *map(str, argv)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"not finished after {timeout_s:.0f} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        talk = done.stderr.strip().splitlines() or ["no output"]
        return {"error": f"exit code {done.returncode}: {talk[-1]}", "stderr": "\n".join(talk[-20:])}
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def machine() -> dict[str, Any]:
    """Where and with what a result was measured."""
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "gpu": _gpu(),
        "cpu": _cpu_model(),
        "cpu_count": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        **{package: _version(package) for package in PACKAGES},
    }


def gpu_is_here() -> bool:
    """Whether an NVIDIA GPU answers; asks the driver's own tool, so that this process stays free of CUDA."""
    return _gpu() is not None


def report(name: str, rows: Sequence[dict[str, Any]], out: Path | None) -> None:
    """Print the rows as a table and write them, with the machine, to a file.

    Args:
        name: Of the benchmark.
        rows: One result each; every row's keys are columns.
        out: JSON file; None writes none.
    """
    print(markdown_table(rows))
    if out is not None:
        out.write_text(json.dumps({"benchmark": name, "machine": machine(), "rows": list(rows)}, indent=1) + "\n")


def markdown_table(rows: Sequence[dict[str, Any]]) -> str:
    """A table with the union of the rows' keys as columns; long texts, such as standard error, are left out."""
    columns = list(dict.fromkeys(key for row in rows for key in row if key != "stderr"))
    lines = [columns, ["---"] * len(columns), *([_cell(row.get(column, "")) for column in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def agreement_rows(runs: Mapping[str, Sequence[Times]], of: str) -> list[dict[str, Any]]:
    """Whether bragg and a peer see the same: a row for all names that both see, and one for each, longest first.

    Args:
        runs: What each of the two saw, run by run; bragg's is the last.
        of: What the names are of, the first column.

    Returns:
        `share` of a name in the peer's time, `ratio` of bragg's mean time of its kernels to the peer's, both means in
        ns, each the median of the runs, and `counts_agree`, whether each run had as many kernels.
    """
    peer, ours = runs
    names = set.intersection(*(set(times) for found in runs.values() for times in found))
    if not names:
        raise SystemExit(f"no {of} is known to both: {[sorted(found[0])[:5] for found in runs.values()]}")
    rows: list[dict[str, Any]] = []
    for name in names:
        mean = {
            profiler: statistics.median(times[name][1] / times[name][0] for times in found)
            for profiler, found in runs.items()
        }
        shares = [times[name][1] / sum(time for _, time in times.values()) for times in runs[peer]]
        counts = {times[name][0] for found in runs.values() for times in found}
        rows.append(
            {
                of: name,
                "share": round(statistics.median(shares), 4),
                "ratio": round(mean[ours] / mean[peer], 4),
                **{f"{profiler}_ns": round(time) for profiler, time in mean.items()},
                "counts_agree": len(counts) == 1,
            }
        )
    rows.sort(key=lambda row: -float(row["share"]))
    share = sum(row["share"] for row in rows)
    ratio = sum(row["share"] * row["ratio"] for row in rows) / share
    return [{of: "all of them", "share": round(share, 4), "ratio": round(ratio, 4)}, *rows]


def ratio_row(ratio: Ratio) -> dict[str, float | int]:
    """A ratio as columns, rounded to what the noise leaves."""
    return {key: value if isinstance(value, int) else round(value, 5) for key, value in asdict(ratio).items()}


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _gpu() -> str | None:
    """Name and driver of the first GPU."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.splitlines()[0] if answer.strip() else None


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
