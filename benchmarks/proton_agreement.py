"""The same program under Proton and under `bragg.proton`, by turns: kernel counts and GPU times by call path.

python benchmarks/proton_agreement.py --out results.json     (a GPU, PyTorch and a Triton that has Proton)
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import harness

PROFILERS = {"proton": "triton.profiler", "bragg": "bragg.proton"}
PROGRAM = """
import importlib, sys
import torch, triton, triton.language as tl
proton = importlib.import_module(sys.argv[1])

def describe(grid, metadata, arguments):
    size = arguments["n"]
    return {"name": f"scale_{size}", "flops32": size, "bytes": 8 * size}

@triton.jit(launch_metadata=describe)
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

x = torch.randn(1 << 24, device="cuda")
y = torch.empty_like(x)
a = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
layer = torch.nn.Linear(2048, 2048, device="cuda")

def step():
    with proton.scope("forward"):
        loss = layer(a.float()).square().mean()
    with proton.scope("backward"):
        loss.backward()
    with proton.scope("kernels", metrics={"steps": 1}):
        with proton.scope("matmul"):
            a @ a
        for size in (1 << 22, 1 << 24):
            scale[(triton.cdiv(size, 1024),)](x, y, size, BLOCK=1024)

for _ in range(5):
    step()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
proton.start(sys.argv[2], hook="triton")
for _ in range(100):
    step()
with proton.scope("capture"), torch.cuda.graph(graph):
    for _ in range(4):
        with proton.scope("captured"):
            torch.sin(x, out=y)
with proton.scope("replays"):
    for _ in range(50):
        graph.replay()
torch.cuda.synchronize()
proton.finalize()
"""


def leaves(node: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Nodes with times, by call path."""
    path = (*path, node["frame"]["name"])
    if "time (ns)" in node["metrics"] and "device_id" in node["metrics"]:
        yield "/".join(path[1:]), node["metrics"]
    for child in node["children"]:
        yield from leaves(child, path)


def record(profiler: str, directory: Path) -> dict[str, dict[str, Any]]:
    """One run of the program in a process of its own."""
    script, output = directory / "program.py", directory / profiler
    script.write_text(PROGRAM)
    subprocess.run([sys.executable, str(script), PROFILERS[profiler], str(output)], check=True, timeout=120)
    return dict(leaves(json.loads(output.with_suffix(".hatchet").read_text())[0]))


def compare(runs: dict[str, list[dict[str, dict[str, Any]]]]) -> list[dict[str, Any]]:
    """A row for each call path: counts of both, and the ratio of the median times."""
    paths = {path: None for found in runs.values() for run in found for path in run}
    rows = []
    for path in paths:
        row: dict[str, Any] = {"path": path}
        for profiler, found in runs.items():
            times = [run[path]["time (ns)"] for run in found if path in run]
            row[f"{profiler} count"] = sorted({run[path]["count"] for run in found if path in run})
            row[f"{profiler} ns"] = statistics.median(times) if times else None
        both = row["bragg ns"] and row["proton ns"]
        rows.append({**row, "ratio": round(row["bragg ns"] / row["proton ns"], 4) if both else None})
    return rows


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--rounds", type=int, default=5, help="how often each of them records the program")
    arguments = parser.parse_args()
    runs: dict[str, list[dict[str, dict[str, Any]]]] = {profiler: [] for profiler in PROFILERS}
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(arguments.rounds):
            for profiler, found in runs.items():
                found.append(record(profiler, Path(directory)))
    harness.report("proton_agreement", compare(runs), arguments.out)


if __name__ == "__main__":
    main()
