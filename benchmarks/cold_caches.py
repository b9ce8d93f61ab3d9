"""What bragg takes at an operator of PyTorch and at a launch, as it measures itself, with warm and with cold caches.

Small nested operators are called below modules, and a kernel is launched on the fake GPU beside them. In a real program
PyTorch and the driver run so much between two operators that most of ours has left the caches: here an observer of
operators writes 1.5 MB at the begin and end of each; `displaced` are translations of addresses and instructions, too
(x86-64), by 4,096 pages of data and 1,024 of code. A figure is the median over the recordings of the ns of one call
of the core: the begin or end of an operator, the entry or return of a launch. Compare two cores by turns.
No GPU needed.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness

HERE = Path(__file__).parent
RECORDINGS = 5
CALLS = {"warm": 20_000, "cold": 1_500, "displaced": 1_000}
SETTLING_S = 0.15  # until the recorder reads the processor's counter
DEPTH = 12  # modules around the layer, of three Python functions each


def program() -> Callable[[], object]:
    """One call: a linear layer without gradients, and a launch."""
    import torch

    from memory_growth import FakeGpu

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    gpu = FakeGpu()

    layer = torch.nn.Linear(4, 4)
    layer.register_forward_hook(lambda *_: gpu.launch(1))
    model = torch.nn.Sequential(layer)
    for _ in range(DEPTH):
        model = torch.nn.Sequential(model)
    x = torch.ones(2, 4)
    return lambda: model(x)


def evict_at_operators(directory: str, *, pages_too: bool) -> None:
    """From now on, at each begin and end."""
    import torch

    from bragg.record.hooks.torch.operators import library_of

    library = f"{directory}/cold_caches.so"
    flags = ["-O2", "-std=c++20", "-shared", "-fPIC"]
    subprocess.run(["c++", *flags, str(HERE / "cold_caches.cpp"), "-o", library], check=True)
    if ctypes.CDLL(library).evict_at_operators(library_of(torch).encode(), pages_too) != 0:
        raise RuntimeError("this PyTorch takes no observers, or this system no code")


def ns_per_call(call: Callable[[], object], calls: int, directory: str) -> dict[str, float]:
    """Of one recording: PyTorch's own part of an operator is left out."""
    import bragg

    session = bragg.start(f"{directory}/out.bragg", backend="cuda", context="python", sample_interval_us=0, force=True)
    time.sleep(SETTLING_S)
    for _ in range(calls):
        call()
    told = session.stop(save=False).meta["overhead"]
    return {part: told[f"{part}_ns"] / told[f"{part}_calls"] for part in ("operators", "launches")}


def measure(caches: str) -> dict[str, float]:
    """The medians."""
    from bragg.record.hooks.torch import operator_cost

    operator_cost._is_told = True  # so PyTorch's own part is none
    call = program()
    with tempfile.TemporaryDirectory() as directory:
        if caches != "warm":
            evict_at_operators(directory, pages_too=caches == "displaced")
        found = [ns_per_call(call, CALLS[caches], directory) for _ in range(RECORDINGS)]
    return {part: statistics.median(each[part] for each in found) for part in found[0]}


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--measure", choices=CALLS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ |= {"LD_LIBRARY_PATH": str(harness.FAKES), "BRAGG_CUPTI_DIR": str(harness.FAKES)}
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    rows: list[dict[str, Any]] = []
    for caches in CALLS:
        found = harness.in_child([__file__, "--measure", caches], timeout_s=120)
        names = {"operators": "begin or end of an operator", "launches": "entry or return of a launch"}
        rows += [{"call": names[part], "caches": caches, "ns": round(found[part])} for part in names if part in found]
        rows += [{"caches": caches, **found}] if "error" in found else []
    harness.report("cold_caches", rows, options.out)


if __name__ == "__main__":
    main()
