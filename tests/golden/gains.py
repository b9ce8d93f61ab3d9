"""Gains that `bragg analyze` estimates for slow programs, beside those of their repaired twins, as a table of the docs.

python -m tests.golden.gains    prints it, for docs/reference/rules.md
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bragg import formats
from bragg.analyze.report import answered
from tests.gpu.slow_pairs import RULES

__all__ = ["PairGain", "gains", "table"]

RECORDINGS = Path(__file__).parent / "recordings/pairs"
_TWICE = 2.0
# Shares that differ by less than this are as near as two runs of one program are.
_NOISE = 0.05


@dataclass(frozen=True)
class PairGain:
    """One pair.

    Attributes:
        name: Of its programs.
        rule: The rule that names the defect.
        estimated: Share of the wall time; None: not known.
        measured: What the twin saves, as such a share.
    """

    name: str
    rule: str
    estimated: float | None
    measured: float

    @property
    def is_near(self) -> bool:
        """Whether both are within a factor of two, or differ by less than two runs do."""
        if self.estimated is None:
            return False
        low, high = sorted((self.estimated, self.measured))
        return high - low < _NOISE or (low > 0 and high <= _TWICE * low)


def gains() -> list[PairGain]:
    """Of all pairs that were recorded; a step is compared with a step, or else the steady state, or the whole run."""
    found = []
    for name, rule in RULES.items():
        if not (RECORDINGS / f"h100-{name}_slow.bragg").exists():
            continue
        profiles = [formats.load(RECORDINGS / f"h100-{name}_{side}.bragg") for side in ("slow", "fast")]
        slow, fast = (answered(profile) for profile in profiles)
        gain = next((each.gain for each in slow.analysis.findings if each.rule == rule), None)
        if gain is not None and gain.is_once:
            before, after = (float(profile.run.duration_ns) for profile in profiles)
        else:
            steps = [each.bounds.n_steps or 0 for each in (slow, fast)]
            # A program that takes one row at a time has a step for each.
            are_same = max(steps) < _TWICE * min(steps)
            before, after = (each.bounds.of_ns / (each.bounds.n_steps if are_same else 1) for each in (slow, fast))
        found.append(PairGain(name, rule, None if gain is None else gain.share, 1 - after / before))
    return found


def table(pairs: list[PairGain]) -> str:
    """Rows of Markdown, and how many are near."""
    rows = [
        f"| {each.rule} | {each.name} | {'not known' if each.estimated is None else f'{each.estimated:.0%}'} | "
        f"{each.measured:.0%} | {'yes' if each.is_near else 'no'} |"
        for each in sorted(pairs, key=lambda each: (each.rule, each.name))
    ]
    near = sum(each.is_near for each in pairs)
    head = "| rule | pair | estimated | measured | within a factor of two |\n|---|---|---|---|---|"
    return "\n".join([head, *rows, "", f"{near} of {len(pairs)} are within a factor of two, or 5 % of the wall time."])


if __name__ == "__main__":
    print(table(gains()))
