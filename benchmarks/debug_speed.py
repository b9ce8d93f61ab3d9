"""How fast the debugger executes kernels: CPU time per program, beside Triton's own interpreter if PyTorch is there."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import harness

ROOT = Path(__file__).parents[1]
CONTENDERS = ("interpret", "check bounds and races", "check all", "triton interpreter")
ROUNDS, UPSTREAM_ROUNDS = 7, 2
TIMEOUT_S = 600

Launch = Callable[[], None]


def workloads(as_argument: Callable[[Any], Any]) -> dict[str, tuple[Launch, int]]:
    """Launches and their numbers of programs.

    Args:
        as_argument: Makes what a contender takes of a NumPy array.
    """
    sys.path.insert(0, str(ROOT))
    kernels = importlib.import_module("tests.support.triton_kernels")
    random = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return as_argument(random.standard_normal(shape).astype(np.float32))

    def zeros(*shape: int) -> Any:
        return as_argument(np.zeros(shape, np.float32))

    n, rows = 4096 * 1024, 1024
    x, y, out = normal(n), normal(n), zeros(n)
    table, target = normal(rows, 781), zeros(rows, 781)
    a, b, c = normal(rows, rows), normal(rows, rows), zeros(rows, rows)
    q, k, v, o = normal(8, 512, 64), normal(8, 512, 64), normal(8, 512, 64), zeros(8, 512, 64)
    index = as_argument(random.integers(0, n, 4096 * 256).astype(np.int32))
    strides = (rows, 1, rows, 1, rows, 1)

    def attention(causal: bool) -> Launch:
        return lambda: kernels.attention[(8, 8)](q, k, v, o, 0.125, 512, D=64, BM=64, BN=64, CAUSAL=causal)

    return {
        "vector add 4096 x 1024": (lambda: kernels.add[(4096,)](x, y, out, n, BLOCK=1024), 4096),
        "softmax 1024 x 781": (lambda: kernels.softmax[(rows,)](target, table, 781, 781, BLOCK=1024), rows),
        "matmul 1024^3, 64^3 blocks": (
            lambda: kernels.matmul[(256,)](a, b, c, rows, rows, rows, *strides, BM=64, BN=64, BK=64),
            256,
        ),
        "attention 8 x 512 x 64": (attention(causal=False), 64),
        "causal attention 8 x 512 x 64": (attention(causal=True), 64),
        "gather 4096 x 256": (lambda: kernels.gather_rows[(4096,)](x, index, out, 4096 * 256, BLOCK=256), 4096),
    }


def measure(contender: str) -> dict[str, float]:
    """Microseconds of CPU time per program in the fastest round, the one that other processes have disturbed least."""
    is_upstream = contender == "triton interpreter"
    if is_upstream:
        torch = importlib.import_module("torch")
        jobs = workloads(torch.from_numpy)
    else:
        jobs = workloads(lambda array: array)
    result = {}
    for name, (launch, programs) in jobs.items():
        with _block(contender):
            for _ in range(0 if is_upstream else 2):
                launch()
            times = [_cpu_seconds(launch) for _ in range(UPSTREAM_ROUNDS if is_upstream else ROUNDS)]
        result[name] = min(times) / programs * 1e6
    return result


def _block(contender: str) -> contextlib.AbstractContextManager[object]:
    if contender == "triton interpreter":
        return contextlib.nullcontext()
    debug = importlib.import_module("bragg.debug")
    if contender == "interpret":
        block: contextlib.AbstractContextManager[object] = debug.interpret()
    else:
        block = debug.check(only=["out-of-bounds", "data-race"] if contender != "check all" else [])
    return block


def _cpu_seconds(launch: Launch) -> float:
    start = time.process_time()
    launch()
    return time.process_time() - start


def main() -> None:
    """Measure every contender in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file of the results")
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        print(json.dumps(measure(options.contender)))
        return
    # Other processes may use the machine: CPU time of one thread is what can be compared.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    measured = {}
    for contender in CONTENDERS if importlib.util.find_spec("torch") else CONTENDERS[:-1]:
        os.environ["TRITON_INTERPRET"] = "1" if contender == "triton interpreter" else "0"
        found = harness.in_child([__file__, "--contender", contender], TIMEOUT_S)
        if "error" not in found:
            measured[contender] = found
        elif contender == CONTENDERS[-1]:  # Triton 3.6's fails with NumPy 2.4.
            print(f"{contender} is left out: {found['error']}", file=sys.stderr)
        else:
            sys.exit(f"{contender}: {found['error']}")
    rows = [_row(name, measured) for name in measured["interpret"]]
    harness.report("debug_speed", rows, options.out)


def _row(name: str, measured: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Times of the contenders that ran, and how much faster than the last one, if that did."""
    row: dict[str, Any] = {"kernel": name}
    row |= {f"{contender}, us per program": round(times[name], 1) for contender, times in measured.items()}
    if upstream := measured.get(CONTENDERS[-1]):
        ours = [contender for contender in measured if contender != CONTENDERS[-1]]
        row |= {f"{one}, times faster": round(upstream[name] / measured[one][name], 1) for one in ours}
    return row


if __name__ == "__main__":
    main()
