"""Size of a trace of 510,000 graph kernels, and how long it takes from the last kernel to the finished file.

A graph of 510 nodes is replayed 1,000 times. bragg's figures are those of the `.bragg` file and of its Perfetto export;
Proton's are those of its Chrome trace.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import harness

NODES, REPLAYS = 510, 1000
EVENTS = NODES * REPLAYS


def record(contender: Any) -> float:
    """Run the graph under a contender; gives the seconds it takes to finish."""
    from workloads import GraphReplay

    workload = GraphReplay(nodes=NODES, replays=REPLAYS)
    contender.attach()
    try:
        workload.prepare()
        workload.run(contender.scope)
    finally:
        finish_s = harness.seconds(contender.detach)
    return finish_s


def file_row(what: str, path: Path, events: int, seconds: float) -> dict[str, Any]:
    """One file's figures."""
    size_bytes = path.stat().st_size
    return {
        "file": what,
        "events": events,
        "size_mb": round(size_bytes / 1e6, 2),
        "bytes_per_event": round(size_bytes / events, 1),
        "seconds": round(seconds, 3),
    }


def bragg_rows(directory: Path) -> list[dict[str, Any]]:
    """The profile and its Perfetto export; events are the slices of kernels."""
    import bragg
    from bragg import formats
    from bragg.model import FrameKind
    from contenders import Bragg

    contender = Bragg(directory, "shadow", data="trace")
    finish_s = record(contender)
    profile = bragg.load(contender.profile_path)
    kind = profile.tree.kind[profile.slices.node]
    kernels = int((kind == FrameKind.KERNEL).sum())
    if kernels < EVENTS:
        raise RuntimeError(f"{kernels} kernels were recorded, at least {EVENTS} ran")
    perfetto = directory / "run.perfetto-trace"
    export_s = harness.seconds(lambda: formats.export(profile, "perfetto", perfetto))
    return [
        file_row("bragg: run.bragg (s: stop to file)", contender.profile_path, kernels, finish_s),
        file_row("bragg: Perfetto export (s: export)", perfetto, kernels, export_s),
    ]


def proton_rows(directory: Path) -> list[dict[str, Any]]:
    """Proton's trace."""
    from contenders import Proton

    contender = Proton(directory, "shadow", "trace", "chrome_trace")
    finish_s = record(contender)
    return [file_row("Proton: Chrome trace (s: finalize)", contender.profile_path, EVENTS, finish_s)]


ROWS = {"bragg": bragg_rows, "proton": proton_rows}


def main() -> None:
    """Measure one contender (as a child) or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--contender", choices=ROWS)
    arguments = parser.parse_args()
    if arguments.contender:
        from contenders import scratch_directory

        with scratch_directory() as directory:
            print(json.dumps({"rows": ROWS[arguments.contender](Path(directory))}))
        return
    rows: list[dict[str, Any]] = []
    for contender in ROWS:
        result = harness.in_child([__file__, "--contender", contender], timeout_s=120)
        rows += result.get("rows") or [{"file": contender, **result}]
    harness.report("trace_size", rows, arguments.out)


if __name__ == "__main__":
    main()
