"""How much longer real programs take, and what bragg itself says of that.

Each program is a child process. In it bursts take turns: bare, with CUPTI's kernel records alone (the floor), with
these and an observer of PyTorch's operators that does nothing, with what `bragg run` records by default, without
operators, with scopes alone. A figure is the median over the rounds of a burst's time by that of
the bare burst of the same round. No round begins that would end after `--limit`, however long a program compiles.
`said` is the slowdown that the profiles of these bursts state; it should be within 30 % or 2 points of `slowdown`,
whichever is more, or no more than that above it where it is called at least so much. A program whose packages are
missing is left out, and says so.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import harness

PROGRAMS = ("llama_generate", "gpt2_training", "timm_resnet50", "compiled_encoder")
CONTENDERS = {
    "floor": "floor",
    "floor and an observer": "floor_observed",
    "bragg run": "bragg_default",
    "without operators": "bragg_python",
    "scopes alone": "bragg_shadow",
}
# The floor plus these, of the time without.
GOALS = {"bragg run": 0.02, "without operators": 0.02, "scopes alone": 0.01}
BURST_S = 0.4
ROUND_S = 6.0  # the last one, and the end of the process
ALLOWED_SHARE, ALLOWED_POINTS = 0.3, 0.02


def measure(program: str, budget_s: float, until: float) -> list[dict[str, Any]]:
    """One row for each contender, in this process; no round begins after `until`, of the monotonic clock."""
    import torch

    from contenders import CONTENDERS as MAKERS
    from contenders import scratch_directory
    from real_workloads import REAL_WORKLOADS

    try:
        workload = REAL_WORKLOADS[program]()
    except ImportError as error:
        return [{"left_out": str(error)}]
    workload.fill(BURST_S)
    wanted = dict(CONTENDERS)
    if not torch.cuda.is_available():
        wanted = {name: maker for name, maker in wanted.items() if not maker.startswith("floor")}
    with scratch_directory() as directory:
        contenders = {name: MAKERS[maker](Path(directory)) for name, maker in wanted.items()}
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        deadline = min(time.monotonic() + budget_s, until)
        names = ["bare", *contenders]
        rounds = 0
        while rounds < 3 or time.monotonic() < deadline:
            shift = rounds % len(names)
            for name in names[shift:] + names[:shift]:
                found[name].append(burst(workload, contenders.get(name)))
            rounds += 1
    return summed_up(found)


def burst(workload: Any, contender: Any | None) -> dict[str, Any]:
    """Seconds of one burst, and what the contender's profile says of itself."""
    if contender is None:
        workload.prepare()
        return {"seconds": harness.seconds(lambda: workload.run(nullcontext))}
    contender.attach()
    try:
        workload.prepare()
        seconds = harness.seconds(lambda: workload.run(contender.scope))
    finally:
        contender.detach()
    return {"seconds": seconds, **said_by(getattr(contender, "profile_path", None))}


def said_by(path: Path | None) -> dict[str, Any]:
    """Counts of a profile, and the slowdown that it states with its parts."""
    if path is None:
        return {}
    import bragg
    from bragg.views.text.run_facts import RunFacts

    meta = bragg.load(path).meta
    statistics_of_run = meta.get("statistics", {})
    counts = {name: statistics_of_run.get(name, 0) for name in ("launches", "scopes", "samples")}
    overhead = RunFacts(meta).overhead
    return {"said": overhead and overhead.slowdown, "overhead": overhead and overhead.to_json(), **counts}


def summed_up(found: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Medians and quartiles; what is said is that of the bursts' own profiles."""
    bare = [each["seconds"] for each in found["bare"]]
    rows: list[dict[str, Any]] = []
    for name, bursts in found.items():
        if name == "bare":
            continue
        ratio = harness.Ratio.of([(without, each["seconds"]) for without, each in zip(bare, bursts, strict=True)])
        row = {"contender": name, **harness.ratio_row(ratio), "slowdown": round(ratio.median - 1, 5)}
        rows.append({**row, **_said(bursts, ratio.median - 1), **_beyond_floor(name, row, rows)})
        if launches := bursts[-1].get("launches"):
            rows[-1]["launches"] = launches
            rows[-1]["added_ns_per_launch"] = round(1e9 * (ratio.median - 1) * ratio.without_s / launches)
    return rows


def _said(bursts: list[dict[str, Any]], truth: float) -> dict[str, Any]:
    told = [each["said"] for each in bursts if each.get("said") is not None]
    if not told:
        return {}
    said = statistics.median(told)
    allowed = max(ALLOWED_SHARE * abs(truth), ALLOWED_POINTS)
    parts = bursts[-1].get("overhead")
    is_at_least = bool(parts and parts["is_at_least"])
    return {
        "said": round(said, 5),
        "is_true": said - truth <= allowed and (is_at_least or truth - said <= allowed),
        "is_at_least": is_at_least,
        **({"parts": json.dumps(parts)} if parts else {}),
    }


def _beyond_floor(name: str, row: dict[str, Any], before: list[dict[str, Any]]) -> dict[str, Any]:
    floor = next((each["median"] for each in before if each["contender"] == "floor"), None)
    if floor is None or name not in GOALS:
        return {}
    return {"beyond_floor": round(row["median"] - floor, 5), "goal": GOALS[name]}


def main() -> None:
    """Measure one program (as a child) or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--seconds", type=float, default=30, help="time for the bursts of one program")
    parser.add_argument("--limit", type=float, default=400, help="time for all programs, s")
    parser.add_argument("--program", choices=PROGRAMS, help="this one alone")
    parser.add_argument("--measure", action="store_true", help="measure it in this process")
    arguments = parser.parse_args()
    deadline = time.monotonic() + arguments.limit
    if arguments.measure:
        print(json.dumps({"rows": measure(arguments.program, arguments.seconds, deadline - ROUND_S)}))
        return
    rows: list[dict[str, Any]] = []
    for program in [arguments.program] if arguments.program else PROGRAMS:
        left_s = deadline - time.monotonic()
        argv = [__file__, "--measure", "--program", program]
        argv += ["--seconds", f"{arguments.seconds}", "--limit", f"{left_s}"]
        result: dict[str, Any] = harness.in_child(argv, left_s) if left_s > 0 else {"left_out": "no time was left"}
        for row in result.pop("rows", [result]):
            rows.append({"program": program, **row})
            print(json.dumps(rows[-1]), flush=True)
    harness.report("real_programs", rows, arguments.out)


if __name__ == "__main__":
    main()
