"""Time of one scope, constructed, entered and left, in ns: while recording and while not; Proton's where it is present.

Bursts are short and their smallest time counts, so that what else the machine does is left out. Needs no GPU: the cpu
backend's scopes are the same native object. Proton is measured while it does not record, since without a GPU it cannot.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import bragg
import harness

REPEATS = 1_000
ROUNDS = 1_000
SETTLING_S = 0.1  # until the recorder reads the processor's counter


def ns_per_scope(scope: Callable[[str], AbstractContextManager[Any]]) -> float:
    """The smallest of the rounds, less that of the loop alone."""

    def scopes() -> float:
        start = time.perf_counter_ns()
        for _ in range(REPEATS):
            with scope("region"):
                pass
        return (time.perf_counter_ns() - start) / REPEATS

    def nothing() -> float:
        start = time.perf_counter_ns()
        for _ in range(REPEATS):
            pass
        return (time.perf_counter_ns() - start) / REPEATS

    scopes()
    return min(scopes() for _ in range(ROUNDS)) - min(nothing() for _ in range(ROUNDS))


def recording_rows() -> list[dict[str, Any]]:
    """bragg, per kind of call path."""
    rows = [{"scope": "bragg, not recording", "ns": ns_per_scope(bragg.scope)}]
    for context in ("shadow", "python"):
        with tempfile.TemporaryDirectory() as directory:
            session = bragg.start(f"{directory}/scopes.bragg", backend="cpu", context=context)
            time.sleep(SETTLING_S)
            try:
                rows.append({"scope": f"bragg, recording, {context} context", "ns": ns_per_scope(bragg.scope)})
            finally:
                bragg.stop(session)
    return rows


def proton_rows() -> list[dict[str, Any]]:
    """Proton's scope, or nothing where Triton is not installed."""
    try:
        import triton.profiler as proton
    except ImportError:
        return []
    rows = [{"scope": "Proton, not recording", "ns": ns_per_scope(proton.scope)}]
    if harness.gpu_is_here():
        with tempfile.TemporaryDirectory() as directory:
            session = proton.start(f"{directory}/scopes", backend="cupti")
            try:
                rows.append({"scope": "Proton, recording, shadow context", "ns": ns_per_scope(proton.scope)})
            finally:
                proton.finalize(session)
    return rows


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    rows = [*recording_rows(), *proton_rows()]
    harness.report("scope_cost", [{**row, "ns": round(row["ns"])} for row in rows], arguments.out)


if __name__ == "__main__":
    main()
