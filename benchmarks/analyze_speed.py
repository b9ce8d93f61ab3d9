"""How long `bragg analyze` takes on 50,000 nodes and the code of 200 kernels: the whole process. Needs Triton, no GPU.

The code is that of the slow kernels of the tests, compiled for an H100 and repeated; times are made up. 18 kernels take
nearly all of the time, so that the rules about kernels judge as many as they ever do.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import harness
from bragg import formats
from bragg.model import FrameKind, Profile
from view_speed import NODES, synthetic_profile

ROOT = Path(__file__).parents[1]
ROUNDS = 7
KERNELS, HOT_KERNELS = 200, 18
HOT = 100  # times as long as the others


def coded_profile() -> Profile:
    """The tree of `view_speed.py` whose kernels have code, launches and a GPU that is always busy."""
    from tests.support.compiled_variants import profile_of
    from tests.support.kernel_pairs import PAIRS

    compiled = profile_of(*{pair.broken.name: pair.broken for pair in PAIRS}.values())
    keys = {name: told["code"] for name, told in compiled.run.attributes.items()}
    names = [f"{name}_{copy}" for copy in range(KERNELS) for name in keys][:KERNELS]
    meant = {name: name.rpartition("_")[0] for name in names}
    sources = {file: text for file, text in compiled.sources.items() if not file.startswith("kernel:")}
    for name in names:
        key = keys[meant[name]]
        texts = {file: text for file, text in compiled.sources.items() if file.startswith(f"kernel:{key}.")}
        sources |= {file.replace(f"kernel:{key}", f"kernel:{name}/0"): text for file, text in texts.items()}
    profile = synthetic_profile()
    frames = profile.tree.frames
    rows = np.flatnonzero(frames.kind == FrameKind.KERNEL)
    called = dict(zip(rows.tolist(), [names[row % KERNELS] for row in range(len(rows))], strict=True))
    device = frames.device.copy()
    device[rows] = 0
    named = frames.replace(name=[called.get(row, name) for row, name in enumerate(frames.name)], device=device)
    launch = {compiled.tree.frames.name[frame]: row for row, frame in enumerate(compiled.kernels.frame.tolist())}
    launches = compiled.kernels.take(np.array([launch[meant[name]] for name in called.values()]))
    time = profile.metrics["gpu_time"]
    is_hot = np.array([called.get(row) in names[:HOT_KERNELS] for row in range(len(frames))])[profile.tree.frame]
    time = time.with_own(np.where(is_hot, time.own * HOT, time.own))
    total_ns = int(time.own.sum())
    meta = {
        **compiled.meta,
        "attributes": {name: {"code": f"{name}/0"} for name in names},
        "gpu_busy_ns": {"0": total_ns},
        "gpu_last_ns": total_ns,
    }
    return replace(
        profile,
        meta=meta,
        tree=replace(profile.tree, frames=named),
        metrics={**profile.metrics, "gpu_time": time},
        kernels=launches.replace(frame=rows.astype(np.int32)),
        sources=sources,
    )


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    os.environ.setdefault("TRITON_CACHE_DIR", str(ROOT / "build" / "triton"))  # as in the tests
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "coded.bragg"
        formats.export(coded_profile(), "bragg", path)
        times = sorted(harness.cpu_seconds(["-m", "bragg", "analyze", path]) for _ in range(ROUNDS))
    row = {"nodes": NODES, "kernels": KERNELS, "median_cpu_s": times[ROUNDS // 2], "min_cpu_s": times[0]}
    harness.report("analyze_speed", [row | {"max_cpu_s": times[-1]}], arguments.out)


if __name__ == "__main__":
    main()
