"""Gains that `bragg analyze` estimates for slow programs, beside those of their repaired twins, as a table of the docs.

python -m tests.golden.gains    prints it, for docs/reference/rules.md
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from bragg import formats
from bragg.analyze.report import Answered, answered
from bragg.model import FrameKind, Profile
from tests.gpu.slow_pairs import RULES

__all__ = ["PairGain", "answer_of", "gains", "table"]

RECORDINGS = Path(__file__).parent / "recordings/pairs"
IN_TURNS = Path(__file__).parents[2] / "benchmarks/results/steps_in_turns_h200.json"
_TWICE = 2.0
# Shares that differ by less than this are as near as two runs of one program are.
_NOISE = 0.05
# A median of fewer operators, and means of fewer calls, are chance.
_FEW, _OFTEN = 4, 30


@dataclass(frozen=True)
class PairGain:
    """One pair.

    Attributes:
        name: Of its programs.
        rule: The rule that names the defect.
        estimated: Share of the wall time; None: not known.
        measured: What the twin saves, as such a share: of steps in turns where these were measured, else of recordings.
        pace: How long PyTorch's operators took the host in the slow program, where the twin has them too and calls them
            as it does: as a multiple, the median. Far from 1 the machine was slower in one of the recordings; None: it
            has too few.
        is_in_turns: Whether both took steps in turns, at one pace (`benchmarks/steps_in_turns.py`).
    """

    name: str
    rule: str
    estimated: float | None
    measured: float
    pace: float | None
    is_in_turns: bool = False

    @property
    def is_near(self) -> bool:
        """Whether both are within a factor of two, or differ by less than two runs do."""
        if self.estimated is None:
            return False
        low, high = sorted((self.estimated, self.measured))
        return high - low < _NOISE or (low > 0 and high <= _TWICE * low)


@cache
def answer_of(program: str) -> Answered:
    """What is said of the recording of a program."""
    return answered(formats.load(RECORDINGS / f"h100-{program}.bragg"))


def gains() -> list[PairGain]:
    """Of all pairs that were recorded; a step is compared with a step, or else the steady state, or the whole run."""
    found, turns = [], {row["program"]: row["saved"] for row in json.loads(IN_TURNS.read_text())["rows"]}
    for name, rule in RULES.items():
        if not (RECORDINGS / f"h100-{name}_slow.bragg").exists():
            continue
        slow, fast = (answer_of(f"{name}_{side}") for side in ("slow", "fast"))
        profiles = [each.evidence.profile for each in (slow, fast)]
        gain = next((each.gain for each in slow.analysis.findings if each.rule == rule), None)
        if gain is not None and gain.is_once:
            before, after = (float(profile.run.duration_ns) for profile in profiles)
        else:
            steps = [each.bounds.n_steps or 0 for each in (slow, fast)]
            # A program that takes one row at a time has a step for each.
            are_same = max(steps) < _TWICE * min(steps)
            before, after = (each.bounds.of_ns / (each.bounds.n_steps if are_same else 1) for each in (slow, fast))
        measured = turns.get(name, 1 - after / before)
        estimated = None if gain is None else gain.share
        found.append(PairGain(name, rule, estimated, measured, _pace(*profiles), name in turns))
    return found


def _pace(slow: Profile, fast: Profile) -> float | None:
    before, after = _means_ns(slow), _means_ns(fast)
    ratios = [before[name] / after[name] for name in before.keys() & after.keys() if after[name]]
    return float(np.median(ratios)) if len(ratios) >= _FEW else None


def _means_ns(profile: Profile) -> dict[str, float]:
    """Own time of the host in one call of each operator that was called often."""
    tree, count = profile.tree, profile.metrics.get("host_count")
    is_operator = tree.kind == FrameKind.OPERATOR
    if count is None or not is_operator.any():
        return {}
    columns = (np.nan_to_num(each.astype(np.float64)) for each in (profile.own("host_time"), count.own))
    total_ns, calls = (np.bincount(tree.frame[is_operator], each[is_operator], len(tree.frames)) for each in columns)
    often = np.flatnonzero(calls >= _OFTEN)
    return {tree.frames.name[frame]: float(total_ns[frame] / calls[frame]) for frame in often.tolist()}


def table(pairs: list[PairGain]) -> str:
    """Rows of Markdown, and how many are near."""
    rows = [
        f"| {each.rule} | {each.name} | {'not known' if each.estimated is None else f'{each.estimated:.0%}'} | "
        f"{each.measured:.0%} | {_pace_text(each)} | {'yes' if each.is_near else 'no'} |"
        for each in sorted(pairs, key=lambda each: (each.rule, each.name))
    ]
    near = sum(each.is_near for each in pairs)
    head = (
        "| rule | pair | estimated | measured | pace of the host | within a factor of two |\n|---|---|---|---|---|---|"
    )
    return "\n".join([head, *rows, "", f"{near} of {len(pairs)} are within a factor of two, or 5 % of the wall time."])


def _pace_text(pair: PairGain) -> str:
    if pair.is_in_turns:
        return "in turns"
    return "" if pair.pace is None else f"{pair.pace:.1f}"


if __name__ == "__main__":
    print(table(gains()))
