"""How long `bragg diff --html` takes on two trees of 40,000 nodes: the whole process. Needs no GPU."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import harness
from bragg import formats
from bragg.model import Profile
from view_speed import synthetic_profile

NODES = 40_000
ROUNDS = 7


def changed(profile: Profile) -> Profile:
    """The same call paths with other times; a tenth of them ran only before, or only after."""
    rng = np.random.default_rng(1)
    metrics = dict(profile.metrics)
    factor = np.where(rng.random(NODES) < 0.1, 0, rng.lognormal(0, 0.2, NODES))
    time = metrics["gpu_time"]
    metrics["gpu_time"] = time.with_own((time.own * factor).astype(np.int64))
    return replace(profile, metrics=metrics)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    profile = synthetic_profile(NODES)
    with tempfile.TemporaryDirectory() as directory:
        before, after, page = (Path(directory) / name for name in ("before.bragg", "after.bragg", "diff.html"))
        formats.export(profile, "bragg", before)
        formats.export(changed(profile), "bragg", after)
        command = [sys.executable, "-m", "bragg", "diff", str(before), str(after), "--html", str(page), "--force"]
        times = sorted(
            harness.seconds(lambda: subprocess.run(command, check=True, capture_output=True)) for _ in range(ROUNDS)
        )
        page_mb = page.stat().st_size / 1e6
    row = {"nodes": NODES, "page_mb": round(page_mb, 2), "median_s": times[ROUNDS // 2], "min_s": times[0]}
    harness.report("diff_speed", [row | {"max_s": times[-1]}], arguments.out)


if __name__ == "__main__":
    main()
