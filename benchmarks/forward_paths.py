"""How much of GPT-2-small's training stands below a call path that is complete to a line of the program.

A path is complete where a Python frame of the program with its line is above the operator, and what autograd evaluates
stands below the operator of the forward pass that it belongs to. On a GPU kernels count, else operators.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any, Literal

import numpy as np

import harness

STEPS = 3
# A step takes a second on a CPU even if its text is short.
ON_CPU = {"steps": STEPS, "batch": 1, "length": 64}
BACKWARD = "[backward]"


def recorded(backend: Literal["cpu", "cuda"]) -> Any:
    """A profile of some steps, with operators and Python frames."""
    import bragg
    import workloads

    program = workloads.Gpt2Step(**(ON_CPU if backend == "cpu" else {"steps": STEPS}))
    program.prepare()
    with tempfile.TemporaryDirectory() as directory:
        session = bragg.start(
            f"{directory}/paths.bragg", backend=backend, framework="torch", context="python", sample_interval_us=0
        )
        program.run(bragg.scope)
        return session.stop(save=False)


def place(profile: Any, node: int) -> str:
    """What a node's path tells: `forward`, `backward` or `no operator` if it is complete, else what it lacks."""
    from bragg.model import FrameKind

    tree = profile.tree
    path = tree.path(node)
    names = [tree.frames.name[tree.frame[step]] for step in path]
    if any(name.startswith("[backward of an unknown") for name in names):
        return "backward without its forward operator"
    end = names.index(BACKWARD) if BACKWARD in names else len(names)
    above = [tree.frame_of(step) for step in path[:end]]
    program = Path(__file__).with_name("workloads.py").name
    if not any(tree.frames.file[frame].endswith(program) and tree.frames.line[frame] > 0 for frame in above):
        return "no line of the program"
    if end < len(names):
        return "backward"
    return "forward" if any(tree.kind[step] == FrameKind.OPERATOR for step in path) else "no operator"


def shares(profile: Any, backend: Literal["cpu", "cuda"]) -> list[dict[str, Any]]:
    """A row for each kind of path: how many kernels (or operators) it has and which share of their time."""
    from bragg.model import FrameKind

    kind, device = (FrameKind.KERNEL, "gpu") if backend == "cuda" else (FrameKind.OPERATOR, "host")
    times, counts = profile.own(f"{device}_time"), profile.own(f"{device}_count")
    found: dict[str, list[int]] = {}
    for node in np.flatnonzero((profile.tree.kind == kind) & (counts > 0)):
        row = found.setdefault(place(profile, int(node)), [0, 0])
        row[0] += int(counts[node])
        row[1] += int(times[node])
    n_all, time_all = (sum(row[column] for row in found.values()) for column in (0, 1))
    return [
        {"path": name, "count": n, "count_percent": 100 * n / n_all, "time_percent": 100 * time / time_all}
        for name, (n, time) in sorted(found.items(), key=lambda item: -item[1][1])
    ]


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    arguments = parser.parse_args()
    harness.report("forward_paths", shares(recorded(arguments.backend), arguments.backend), arguments.out)


if __name__ == "__main__":
    main()
