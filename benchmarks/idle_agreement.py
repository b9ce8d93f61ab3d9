"""Idle time that the recorder folded, against what the timeline of the same recording says.

    bragg run --data trace -o train.bragg train.py
    python benchmarks/idle_agreement.py train.bragg … --out results.json

In the whole run and in its steady state: idle time, its classes, and by operator what the GPU waited for. Differences
are shares of all idle time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import bragg
import harness
from bragg.analyze.idle import idle_times
from bragg.analyze.idle_paths import with_idle_paths
from bragg.analyze.wall.parts import wall_parts
from bragg.model import FrameKind, Profile, SliceTable

CLASSES = ("idle_ns", "late_launch_ns", "queued_ns", "waited_ns", "full_queue_ns")
KINDS = (FrameKind.OPERATOR, FrameKind.SCOPE, FrameKind.STATE)


def main() -> None:
    """Compare the two in each file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    harness.report("idle_agreement", [row for file in arguments.files for row in compare(file)], arguments.out)


def compare(file: Path) -> Iterator[dict[str, Any]]:
    """A row for each part of the run."""
    timeline = bragg.load(file)
    folded = replace(timeline, slices=SliceTable.empty())
    parts = wall_parts(folded)
    for part, steady in (("whole run", None), ("steady state", parts.steady if parts else None)):
        if part == "steady state" and steady is None:
            continue
        truth, found = idle_times(timeline, steady), idle_times(folded, steady)
        of_class = {
            name.removesuffix("_ns"): max(
                abs((getattr(b, name) or 0) - getattr(a, name)) / max(a.idle_ns, 1)
                for a, b in zip(truth, found, strict=True)
            )
            for name in CLASSES
        }
        by_timeline, by_fold = by_operator(timeline, steady), by_operator(folded, steady)
        total = max(sum(by_timeline.values()), 1)
        off = {name: abs(by_timeline.get(name, 0) - by_fold.get(name, 0)) / total for name in {*by_timeline, *by_fold}}
        worst = max(off, key=lambda name: off[name])
        yield {
            "file": file.stem,
            "part": part,
            "idle_s": round(sum(each.idle_ns for each in truth) / 1e9, 4),
            "classes_off": {name: round(share, 5) for name, share in of_class.items()},
            "worst_operator": worst,
            "worst_operator_off": round(off[worst], 4),
        }


def by_operator(profile: Profile, steady: Any) -> dict[str, int]:
    """Idle time in ns by the innermost operator, scope or state around what the host did."""
    found = with_idle_paths(profile, steady=steady)
    tree, own = found.tree, found.own("gpu_idle_time")
    sums: dict[str, int] = {}
    for node in np.flatnonzero(own).tolist():
        at = node
        while at > 0 and tree.kind[at] not in KINDS:
            at = int(tree.parent[at])
        name = tree.frames.name[tree.frame[at]]
        sums[name] = sums.get(name, 0) + int(own[node])
    return sums


if __name__ == "__main__":
    main()
