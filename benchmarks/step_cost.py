"""What each part of a recording adds to a step of a program: the median over equal steps of sessions by turns.

A session is what its user has: it begins, takes some steps that are left out, then `STEPS` that are timed, and ends. In
one process sessions of all contenders take turns, bare ones between them. The n-th step does the same work in each
session: the n-th token of Llama has the same length of keys, and the n-th step of `dynamic_net` the same polynomial.
A step ends when the GPU is done with it. A round's figure for a contender is the median over the steps of its time by
that of the same bare step of the round; the result is the median over rounds, and `low` to `high` are where that lies
with 90 % confidence (bootstrap over rounds). `mean` also has what hits few steps. `cpu` is the same of CPU time.

Most contenders are a ladder, each with one thing more than the one before. `points` is what that adds, in percent of
the bare step; those of the rungs add up to the default recording.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import harness
from real_programs import said_by

BARE = "bare"
DEFAULT = "operators (bragg run)"
# By name: a contender, and the one that it has one thing more than.
COMPARED = {
    "CUPTI's records": ("floor", BARE),
    "launches": ("bragg_launches", "CUPTI's records"),
    "call paths": ("bragg_paths", "launches"),
    "idle time": ("bragg_idle", "call paths"),
    "host samples": ("bragg_python", "idle time"),
    DEFAULT: ("bragg_default", "host samples"),
    "telemetry at once": ("bragg_telemetry", DEFAULT),
    "an observer that does nothing": ("observed", BARE),
    "native call paths": ("bragg_native", "host samples"),
    "without idle time": ("bragg_no_idle", DEFAULT),
}
STEPS, SETTLING_STEPS = 24, 12
TOKENS = 12  # of one `generate`: cuDNN plans each length of keys anew, for half a second
BARE_EVERY = 3
PROFILES = 3  # of the last rounds are read
RESAMPLES = 1_000

Sessions = dict[str, list["Times"]]


@dataclass(frozen=True)
class Times:
    """Of one session.

    Attributes:
        wall_ns: int64 [STEPS], time of each step.
        cpu_ns: int64 [STEPS], CPU time of the thread in it.
        faults: Pages that the thread touched first, in all of them.
        switches: How often the thread was put aside, in all of them.
        profile: Of the session.
    """

    wall_ns: np.ndarray
    cpu_ns: np.ndarray
    faults: int
    switches: int
    profile: Path | None


class Clock:
    """Reads what a step took, at its begin and at the end of the last one."""

    def __init__(self) -> None:
        self._wall_ns: list[int] = []
        self._cpu_ns: list[int] = []
        self._usage: list[tuple[int, int]] = []

    def read(self) -> None:
        """A step begins."""
        usage = resource.getrusage(resource.RUSAGE_THREAD)
        self._usage.append((usage.ru_minflt, usage.ru_nvcsw + usage.ru_nivcsw))
        self._cpu_ns.append(time.thread_time_ns())
        self._wall_ns.append(time.perf_counter_ns())

    def times(self, profile: Path | None) -> Times:
        """Without the steps that are left out."""
        faults, switches = (last - first for first, last in zip(self._usage[-STEPS - 1], self._usage[-1], strict=True))
        wall_ns, cpu_ns = (np.diff(readings)[-STEPS:] for readings in (self._wall_ns, self._cpu_ns))
        return Times(wall_ns, cpu_ns, faults, switches, profile)


def tokens_of_llama() -> Callable[[Clock], None]:
    """Some `generate` of the same prompt; a step is a token, or the prompt."""
    from real_workloads import LlamaGenerate

    llama = LlamaGenerate(TOKENS)
    clock = Clock()
    llama.model.register_forward_pre_hook(lambda *_: clock.read())

    def take(of_session: Clock) -> None:
        nonlocal clock
        clock = of_session
        for _ in range((STEPS + SETTLING_STEPS) // TOKENS):
            llama.step()
        clock.read()

    return take


def steps_of(name: str) -> Callable[[Clock], None]:
    """The steps of a program of `workloads`, each until the GPU is done."""
    from workloads import WORKLOADS, Decode, synchronize

    workload: Any = WORKLOADS[name]()
    step = workload.step if isinstance(workload, Decode) else lambda: workload.step(nullcontext)

    def take(clock: Clock) -> None:
        random.seed(0)
        for _ in range(STEPS + SETTLING_STEPS):
            clock.read()
            step()
            synchronize()
        clock.read()

    return take


PROGRAMS = ("llama_generate", "gpt2_small", "dynamic_net", "decode")


def session(take: Callable[[Clock], None], contender: Any | None) -> Times:
    """Times of one."""
    from workloads import synchronize

    clock = Clock()
    if contender is None:
        take(clock)
        synchronize()
        return clock.times(None)
    contender.attach()
    try:
        with contender.scope("session"):
            take(clock)
            synchronize()
    finally:
        contender.detach()
    return clock.times(getattr(contender, "profile_path", None))


def measure(program: str, names: Sequence[str], budget_s: float) -> list[dict[str, Any]]:
    """Rows of all contenders, in this process; no round begins that would end after `budget_s`."""
    deadline = time.monotonic() + budget_s
    from contenders import CONTENDERS, scratch_directory
    from workloads import DEVICE

    take = tokens_of_llama() if program == "llama_generate" else steps_of(program)
    makers = {name: COMPARED[name][0] for name in names}
    if DEVICE == "cpu":
        makers = {name: maker for name, maker in makers.items() if maker != "floor"}
    with scratch_directory() as directory:
        contenders = {name: CONTENDERS[maker](Path(directory)) for name, maker in makers.items()}
        never_attached = [session(take, None) for _ in range(3)][1:]
        for each in contenders.values():
            session(take, each)  # loads and allocates what later sessions find
        rounds: list[Sessions] = []
        longest_s = 0.0
        while not rounds or time.monotonic() + longest_s < deadline:
            longest_s = max(longest_s, harness.seconds(lambda: rounds.append(one_round(take, contenders, len(rounds)))))
        return [*summed_up(program, rounds), {"program": program, **drift(never_attached, rounds)}]


def one_round(take: Callable[[Clock], None], contenders: dict[str, Any], shift: int) -> Sessions:
    """A session of each contender, in an order that goes round, and bare ones between them."""
    found: Sessions = defaultdict(list)
    names = list(contenders)
    at = shift % len(names)
    for index, name in enumerate(names[at:] + names[:at]):
        if index % BARE_EVERY == 0:
            found[BARE].append(session(take, None))
        found[name].append(session(take, contenders[name]))
    found[BARE].append(session(take, None))
    return found


def bare_steps(found: Sessions, of: str) -> np.ndarray:
    """float64 [STEPS]: the median over the bare sessions of a round."""
    medians: np.ndarray = np.median([getattr(each, of) for each in found[BARE]], axis=0)
    return medians


def ratios(rounds: list[Sessions], name: str, of: str = "wall_ns") -> np.ndarray:
    """float64 [rounds]: how much longer the typical step took."""
    return np.array([np.median(getattr(found[name][0], of) / bare_steps(found, of)) for found in rounds])


def mean_ratios(rounds: list[Sessions], name: str) -> np.ndarray:
    """float64 [rounds]: how much longer all steps took, beside the median bare session."""
    bare_ns = [statistics.median(each.wall_ns.sum() for each in found[BARE]) for found in rounds]
    return np.array([found[name][0].wall_ns.sum() / ns for found, ns in zip(rounds, bare_ns, strict=True)])


def told(values: np.ndarray, scale: float = 1.0) -> dict[str, float]:
    """Median over rounds, and where it lies with 90 % confidence."""
    chosen = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    low, high = np.quantile(np.median(values[chosen], axis=1), (0.05, 0.95))
    return {
        "median": round(scale * float(np.median(values)), 5),
        "low": round(scale * float(low), 5),
        "high": round(scale * float(high), 5),
    }


def summed_up(program: str, rounds: list[Sessions]) -> list[dict[str, Any]]:
    """A row for each contender, in their order."""
    names = [name for name in COMPARED if name in rounds[0]]
    bare_ns = statistics.median(float(np.median(bare_steps(found, "wall_ns"))) for found in rounds)
    rows: list[dict[str, Any]] = []
    for name in names:
        now = ratios(rounds, name)
        less = COMPARED[name][1]
        points = now - (ratios(rounds, less) if less in names else 1)
        more = {f"points_{key}": value for key, value in told(points, 100).items()}
        row = {"program": program, "contender": name, "rounds": len(rounds), "step_us": round(bare_ns / 1000, 1)}
        row |= told(now) | {"mean": told(mean_ratios(rounds, name))["median"]}
        row |= {"cpu": told(ratios(rounds, name, "cpu_ns"))["median"], **more}
        said = said_by_last(rounds, name)
        if launches := said.pop("launches", 0) / (STEPS + SETTLING_STEPS):
            row["points_ns_per_launch"] = round(more["points_median"] / 100 * bare_ns / launches)
        rows.append(row | counts(rounds, name) | said)
    return rows


def counts(rounds: list[Sessions], name: str) -> dict[str, float]:
    """Medians of what is counted over a session, the bare ones' taken off."""
    found: dict[str, float] = {}
    for what in ("faults", "switches"):
        more = [
            getattr(each[name][0], what) - statistics.median(getattr(bare, what) for bare in each[BARE])
            for each in rounds
        ]
        found[what] = statistics.median(more)
    return found


def said_by_last(rounds: list[Sessions], name: str) -> dict[str, Any]:
    """What the profiles of the last rounds say of their overhead; its parts, and launches, in the last one."""
    found = [said_by(each[name][0].profile) for each in rounds[-PROFILES:]]
    slowdowns = [each["said"] for each in found if each.get("said") is not None]
    if not slowdowns:
        return {}
    last = found[-1]
    return {
        "said": round(statistics.median(slowdowns), 4),
        "parts": json.dumps(last["overhead"]),
        "launches": last["launches"],
    }


def drift(never_attached: list[Times], rounds: list[Sessions]) -> dict[str, float]:
    """Bare steps after contenders beside those before the first one, and of neighbours the quartile of the noise."""
    before = np.median([each.wall_ns for each in never_attached], axis=0)
    after = np.median([bare_steps(found, "wall_ns") for found in rounds], axis=0)
    noise = [
        abs(float(np.median(first.wall_ns / second.wall_ns)) - 1)
        for found in rounds
        for first, second in zip(found[BARE], found[BARE][1:], strict=False)
    ]
    return {
        "bare_to_never_attached": round(float(np.median(after / before)), 4),
        "noise_of_a_session": round(statistics.median(noise), 4),
    }


def main() -> None:
    """Measure one program (as a child) or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--seconds", type=float, default=60, help="time for one program, its loading too")
    parser.add_argument("--program", choices=PROGRAMS, default="llama_generate")
    parser.add_argument("--contenders", nargs="*", choices=COMPARED, default=list(COMPARED))
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps({"rows": measure(arguments.program, arguments.contenders, arguments.seconds)}))
        return
    argv = [__file__, "--measure", "--program", arguments.program, "--seconds", f"{arguments.seconds}"]
    result = harness.in_child([*argv, "--contenders", *arguments.contenders], 2 * arguments.seconds + 60)
    harness.report("step_cost", result.get("rows", [result]), arguments.out)


if __name__ == "__main__":
    main()
