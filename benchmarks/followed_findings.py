"""What programs gain by the change that a finding asks for.

python benchmarks/followed_findings.py [--rounds 3] [--limit 400] [--out FILE] [NAME...]

Each program of tests/gpu/programs/real and its twin `NAME_followed.py` run in turns under `bragg run --regions all`;
so do `NAME_slow.py` and `NAME_fast.py` of tests/gpu/programs/slow, if they are named. `estimated` is the gain that the
first finding states, or that of the defect which was planted; `measured` what the twin saves of a step, each a median
over the rounds. A twin with larger batches is compared by sequences.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import harness

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.gpu.slow_pairs import RULES

PROGRAMS = Path(__file__).parents[1] / "tests" / "gpu" / "programs"
# Sequences in a step of the twin, by those of the program.
LARGER_BATCHES = {"compiled_encoder": 4}
LIMIT_S = 150


def analyzed(program: Path) -> dict[str, Any]:
    """Bounds and findings of one recorded run, as `bragg analyze --json` tells them."""
    with tempfile.TemporaryDirectory() as directory:
        profile = str(Path(directory) / "run.bragg")
        bragg = [sys.executable, "-m", "bragg"]
        subprocess.run(
            [*bragg, "run", "--regions", "all", "-o", profile, str(program)],
            capture_output=True,
            timeout=LIMIT_S,
            check=True,
        )
        done = subprocess.run(
            [*bragg, "analyze", profile, "--json", "--least-gain", "0"],
            capture_output=True,
            timeout=LIMIT_S,
            check=True,
            text=True,
        )
    (told,) = json.loads(done.stdout)["profiles"]
    return dict(told)


def compared(name: str, rounds: int, until: float) -> dict[str, Any]:
    """One row; rounds end early at `until`, of the monotonic clock."""
    sides = (
        (f"slow/{name}_slow.py", f"slow/{name}_fast.py")
        if name in RULES
        else (f"real/{name}.py", f"real/{name}_followed.py")
    )
    found: tuple[list[dict[str, Any]], ...] = ([], [])
    for turn in range(rounds):
        if turn and time.monotonic() > until:
            break
        for side, told in zip(sides, found, strict=True):
            told.append(analyzed(PROGRAMS / side))
    before, after = (
        statistics.median(each["bounds"]["of_ns"] / (each["bounds"]["n_steps"] or 1) for each in told) for told in found
    )
    after /= LARGER_BATCHES.get(name, 1)
    wanted = RULES.get(name)
    first = [
        next((each for each in told["findings"] if each["gain"] and wanted in (None, each["rule"])), None)
        for told in found[0]
    ]
    stated = [each for each in first if each is not None]
    return {
        "program": name,
        "rounds": len(first),
        "rules": sorted({each["rule"] for each in stated}),
        "steps": [[each["bounds"]["n_steps"] for each in told] for told in found],
        "before_ns": round(before),
        "after_ns": round(after),
        "estimated": round(statistics.median(each["gain"]["share"] for each in stated), 3) if stated else None,
        "measured": round(1 - after / before, 3),
        "next": sorted({each["findings"][0]["rule"] for each in found[1] if each["findings"]}),
    }


def main() -> None:
    """Run all programs, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=400, help="time after which no round begins, s")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    until = time.monotonic() + arguments.limit
    names = sorted(path.stem.removesuffix("_followed") for path in PROGRAMS.glob("real/*_followed.py"))
    rows = []
    for name in arguments.names or names:
        if time.monotonic() > until:
            break
        try:
            rows.append(compared(name, arguments.rounds, until))
        except subprocess.SubprocessError as error:
            rows.append({"program": name, "failed": str(getattr(error, "stderr", None) or error)[-300:]})
        print(json.dumps(rows[-1]), flush=True)
    harness.report("followed_findings", rows, arguments.out)


if __name__ == "__main__":
    main()
