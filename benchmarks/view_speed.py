"""CPU time of `bragg view`: the whole process, from start to exit, on a profile of 50,000 nodes and on recordings.

The recordings have timelines, of which the view says what bounds the program. Needs no GPU.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path

import numpy as np

import harness
from bragg import formats
from bragg.model import CallTree, FrameKind, FrameTable, Metric, MetricKind, Profile

NODES = 50_000
ROUNDS = 7
RECORDINGS = Path(__file__).parents[1] / "tests/golden/recordings"
FILES, FUNCTIONS, KERNELS = 40, 900, 300


def synthetic_profile(nodes: int = NODES) -> Profile:
    """A tree as a training run gives it: Python frames to a depth of about 12, kernels as leaves.

    Args:
        nodes: Size of the tree.
    """
    rng = random.Random(0)
    python_frames = [
        (FrameKind.PYTHON, f"function_{i}", f"package/module_{i % FILES}.py", rng.randrange(1, 999))
        for i in range(FUNCTIONS)
    ]
    template = "void at::native::elementwise_kernel<4, at::native::CUDAFunctor_{}<float>, std::array<char*, 3ul>>(int)"
    kernels = [(FrameKind.KERNEL, template.format(i), "", 0) for i in range(KERNELS)]
    rows = [(FrameKind.ROOT, "root", "", 0), *python_frames, *kernels]
    frames = FrameTable(
        kind=np.array([row[0] for row in rows], np.uint8),
        name=[row[1] for row in rows],
        file=[row[2] for row in rows],
        line=np.array([row[3] for row in rows], np.int32),
        device=np.full(len(rows), -1, np.int32),
    )
    parent, frame, inner = [-1], [0], [0]
    for node in range(1, nodes):
        parent.append(inner[int(len(inner) * rng.random() ** 0.7)])
        is_kernel = node > 100 and rng.random() < 0.5
        frame.append(rng.randrange(1 + FUNCTIONS, len(rows)) if is_kernel else rng.randrange(1, 1 + FUNCTIONS))
        if not is_kernel:
            inner.append(node)
    tree = CallTree(parent=np.array(parent, np.int32), frame=np.array(frame, np.int32), frames=frames)
    leaf = tree.kind == FrameKind.KERNEL
    weights = np.random.default_rng(0).lognormal(10, 2, nodes).astype(np.int64)
    metrics = {
        "gpu_time": Metric("gpu_time", "ns", MetricKind.INCLUSIVE, np.where(leaf, weights, 0)),
        "gpu_count": Metric("gpu_count", "1", MetricKind.INCLUSIVE, leaf.astype(np.int64)),
    }
    return Profile(meta={"target": "synthetic"}, tree=tree, metrics=metrics)


def view_cpu_seconds(path: Path) -> list[float]:
    """Of a process in each round, ascending; its output goes to a pipe, as into a pager. The first is not counted."""
    command: list[str | Path] = ["-m", "bragg", "view", path]
    harness.cpu_seconds(command)
    return sorted(harness.cpu_seconds(command) for _ in range(ROUNDS))


def row_of(name: str, path: Path) -> dict[str, object]:
    """What the profile holds, and the times."""
    profile = formats.load(path)
    times = view_cpu_seconds(path)
    return {
        "profile": name,
        "nodes": len(profile.tree),
        "slices": len(profile.slices),
        "file_mb": round(path.stat().st_size / 1e6, 2),
        "median_cpu_s": times[ROUNDS // 2],
        "min_cpu_s": times[0],
        "max_cpu_s": times[-1],
    }


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "synthetic.bragg"
        formats.export(synthetic_profile(), "bragg", path)
        rows = [row_of("synthetic", path)]
    rows += [row_of(path.stem, path) for path in sorted(RECORDINGS.glob("*.bragg"))]
    harness.report("view_speed", rows, arguments.out)


if __name__ == "__main__":
    main()
