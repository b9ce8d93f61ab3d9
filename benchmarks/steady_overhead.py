"""What a recording says that it added to the steady state (`recording +13 %`), against what it did add.

Each program runs by turns as a process of its own and under `bragg run`, and times its own steps. A step is the mean
over the later ones of a run, up to when the GPU is done with the last. `measured` is the median over rounds of a
recorded step by the bare one of the round, less 1. `said` is what the profiles state of their steady state, or of the
run where they state none of its own. It should be within 30 % or 2 points of `measured`, whichever is more, or no more
than that above it where it is called at least so much.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import harness
from real_programs import ALLOWED_POINTS, ALLOWED_SHARE

PROGRAMS = ("dynamic_net", "decode", "llama_generate", "gpt2_training", "timm_resnet50", "compiled_encoder")
EARLIER = 0.4  # of the steps: they are left out
PATIENCE_S = 180
LEAST_ROUNDS = 2


def step_of(program: str) -> Callable[[], object]:
    """One step, or 16 tokens."""
    from real_workloads import REAL_WORKLOADS
    from workloads import WORKLOADS, Decode

    if program in REAL_WORKLOADS:
        return REAL_WORKLOADS[program]().step
    workload: Any = WORKLOADS[program]()
    return workload.step if isinstance(workload, Decode) else lambda: workload.step(nullcontext)


def take_steps(program: str, lasts_s: float) -> dict[str, Any]:
    """How many steps there were, and the mean of the later ones, in us."""
    from workloads import synchronize

    step = step_of(program)
    step()
    synchronize()
    begins_s = [time.perf_counter()]
    while begins_s[-1] < begins_s[0] + lasts_s:
        step()
        begins_s.append(time.perf_counter())
    synchronize()
    ended_s = time.perf_counter()
    first = int(EARLIER * (len(begins_s) - 1))
    return {"steps": len(begins_s) - 1, "step_us": 1e6 * (ended_s - begins_s[first]) / (len(begins_s) - 1 - first)}


def run(program: str, lasts_s: float, profile: Path | None) -> dict[str, Any]:
    """What the program says of its steps, recorded where there is a profile to write."""
    recorded = ["-m", "bragg", "run", "--force", "-o", str(profile)] if profile else []
    steps = [__file__, "--steps-of", program, "--seconds", str(lasts_s)]
    found = harness.in_child([*recorded, *steps], PATIENCE_S)
    if "error" in found:
        raise SystemExit(f"{program}: {found['error']}\n{found.get('stderr', '')}")
    return found


def said_by(path: Path) -> dict[str, Any]:
    """The slowdown that a profile states of its steady state."""
    import bragg
    from bragg.analyze.wall.parts import wall_parts
    from bragg.model.meta.overhead import overhead_of

    profile = bragg.load(path)
    parts, whole = wall_parts(profile), overhead_of(profile.meta)
    own = parts.steady.overhead if parts and parts.steady else None
    overhead = own or whole
    if overhead is None:
        raise SystemExit(f"{path} states no overhead")
    return {
        "said": overhead.slowdown,
        "is_own": own is not None,
        "is_at_least": overhead.is_at_least,
        "of_run": whole.slowdown if whole else None,
        "parts": overhead.to_json()["parts"],
    }


def measure(program: str, lasts_s: float, until: float) -> dict[str, Any]:
    """The row of a program, whose rounds begin before `until`."""
    rounds: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "run.bragg")
        while len(rounds) < LEAST_ROUNDS or time.monotonic() < until:
            order = (None, path) if len(rounds) % 2 else (path, None)
            step_us = {each: run(program, lasts_s, each)["step_us"] for each in order}
            rounds.append({"bare_us": step_us[None], "ratio": step_us[path] / step_us[None], **said_by(path)})
    ratios = [each["ratio"] - 1 for each in rounds]
    measured, said = statistics.median(ratios), statistics.median(each["said"] for each in rounds)
    allowed = max(ALLOWED_SHARE * abs(measured), ALLOWED_POINTS)
    is_at_least = all(each["is_at_least"] for each in rounds)
    return {
        "program": program,
        "rounds": len(rounds),
        "step_us": round(statistics.median(each["bare_us"] for each in rounds), 1),
        "measured": round(measured, 4),
        "least": round(min(ratios), 4),
        "most": round(max(ratios), 4),
        "said": round(said, 4),
        "of_run": [round(each["of_run"], 4) for each in rounds],
        "is_own": sum(each["is_own"] for each in rounds),
        "is_at_least": is_at_least,
        "is_true": said - measured <= allowed and (is_at_least or measured - said <= allowed),
        "parts": json.dumps(rounds[-1]["parts"]),
    }


def main() -> None:
    """Measure the programs, or take the steps of one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--seconds", type=float, default=6, help="time for the steps of one run")
    parser.add_argument("--limit", type=float, default=300, help="time for all programs, s")
    parser.add_argument("--steps-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.steps_of:
        print(json.dumps(take_steps(arguments.steps_of, arguments.seconds)))
        return
    began, names = time.monotonic(), arguments.programs.split(",")
    rows: list[dict[str, Any]] = []
    for number, program in enumerate(names, start=1):
        rows.append(measure(program, arguments.seconds, began + arguments.limit * number / len(names)))
        print(json.dumps(rows[-1]), flush=True)
    harness.report("steady_overhead", rows, arguments.out)


if __name__ == "__main__":
    main()
