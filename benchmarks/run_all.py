"""Runs every benchmark that this machine can run, each in a process of its own, under one time limit.

Writes `benchmarks.json` (everything) and `benchmarks.md` (the tables) to a directory, anew after each part, so that a
run that is cut short leaves what it had.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Part:
    """One script.

    Attributes:
        name: Of the script.
        limit_s: It is ended after this time.
        needs: `gpu`, `fakes` (of the driver, built with the native tests), `torch`, `triton` or nothing; left out
            where that is missing.
        takes_limit: It wants to know its limit, to leave out its last cases itself.
    """

    name: str
    limit_s: float
    needs: str = ""
    takes_limit: bool = False


PARTS = [
    Part("scope_cost", 60),
    Part("metric_cost", 60),
    Part("operators", 240, needs="torch"),
    Part("agreement", 180, needs="gpu"),
    Part("trace_size", 120, needs="gpu"),
    Part("view_speed", 60),
    Part("cubin_lines", 60, needs="triton"),
    Part("debug_speed", 240, needs="triton"),
    Part("debug_unseen", 60, needs="triton"),
    Part("diff_speed", 60),
    Part("diff_gate", 400),
    Part("report_page", 120),
    Part("timeline_speed", 120),
    Part("job_timeline", 60),
    Part("overhead", 600, needs="gpu", takes_limit=True),
    Part("sampling", 400, needs="gpu"),
    Part("memory_growth", 120, needs="fakes"),
    Part("native_frames", 60, needs="fakes"),
]


def run_part(part: Part, limit_s: float, out: Path) -> dict[str, Any]:
    """Run one script to its JSON result; a failure becomes a result with the field `error`."""
    command = [sys.executable, str(HERE / f"{part.name}.py"), "--out", str(out)]
    if part.takes_limit:
        command += ["--limit", f"{0.9 * limit_s:.0f}"]
    start = time.monotonic()
    log = out.with_suffix(".log")
    with log.open("w") as talk:
        try:
            code = subprocess.run(command, stdout=talk, stderr=talk, timeout=limit_s, check=False).returncode
            problem = f"exit code {code}" if code else None
        except subprocess.TimeoutExpired:
            problem = f"not finished after {limit_s:.0f} s"
    result = json.loads(out.read_text()) if out.exists() else {"benchmark": part.name, "rows": []}
    result["seconds"] = round(time.monotonic() - start, 1)
    return {**result, "error": problem, "log": log.read_text()[-20_000:]} if problem else result


def write(results: list[dict[str, Any]], machine: dict[str, Any], out: Path) -> None:
    """Both files."""
    (out / "benchmarks.json").write_text(json.dumps({"machine": machine, "results": results}, indent=1) + "\n")
    sections = ["# Benchmark results", harness.markdown_table([machine])]
    for result in results:
        error = [f"**{result['error']}**"] if "error" in result else []
        table = [harness.markdown_table(result["rows"])] if result["rows"] else []
        sections += [f"## {result['benchmark']} ({result['seconds']} s)", *error, *table]
    (out / "benchmarks.md").write_text("\n\n".join(sections) + "\n")


def main() -> None:
    """Run the parts in order; the exit code says whether all of them did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="directory for the results")
    parser.add_argument("--limit", type=float, default=1800, help="time for everything, s")
    parser.add_argument("--only", nargs="+", metavar="PART", help="these parts alone")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + arguments.limit
    machine = harness.machine()
    packages = {name: importlib.util.find_spec(name) is not None for name in ("torch", "triton")}
    here = {"": True, "gpu": harness.gpu_is_here(), "fakes": harness.FAKES.is_dir(), **packages}
    parts = [part for part in PARTS if part.name in (arguments.only or [part.name]) and here[part.needs]]
    results = []
    with tempfile.TemporaryDirectory() as directory:
        for part in parts:
            limit_s = min(part.limit_s, deadline - time.monotonic())
            if limit_s <= 0:
                results.append({"benchmark": part.name, "rows": [], "seconds": 0, "error": "no time was left"})
            else:
                results.append(run_part(part, limit_s, Path(directory) / f"{part.name}.json"))
            print(f"{part.name}: {results[-1].get('error', 'done')} ({results[-1]['seconds']} s)", flush=True)
            write(results, machine, arguments.out)
    print((arguments.out / "benchmarks.md").read_text())
    sys.exit(any("error" in result for result in results))


if __name__ == "__main__":
    main()
