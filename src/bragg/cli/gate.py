"""The gates of `bragg diff`: what the user wants judged, and what is said of it."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bragg.analyze.comparing.comparison import Comparison
from bragg.analyze.comparing.gates import Gate, Gated, Limit, Verdict, rows_verdict, verdict_of
from bragg.cli.console import say, stream_style
from bragg.errors import GateExceeded, UsageError
from bragg.model import Profile
from bragg.views.text.diff_text import judged_text, named_frames, path_text, verdict_json

_NUMBER = re.compile(r"(?P<number>\d+(?:\.\d+)?|\.\d+) ?(?P<unit>\D*)")
_TIMES_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_NAMED = (Gated.PATH, Gated.KERNEL, Gated.REGION)
_STEP = "step"
_KNOWN = "Known: total, wall, step, rows, region:NAME, path:NAME, kernel:NAME; of all but rows at most: step=30ms"
_ONE_RUN = (
    "note: one run each does not tell how much runs differ by chance, so a usual value is assumed; to measure it: "
    "bragg run --repeat 10"
)
_UNDECIDED = "note: not decided: it grew by more than the limit, but these runs differ too much to be sure"


@dataclass(frozen=True)
class Gates:
    """What is judged, and what is allowed.

    Attributes:
        gates: What is judged.
        percent: Growth that is allowed, of the value before.
        floor: Number and unit of the growth that never fails, empty for the metric's unit; None: the default.
        limit_text: Both, as the user wrote them.
        fails_undecided: Whether growth over the limit fails although it may be noise.
    """

    gates: tuple[Gate, ...]
    percent: float
    floor: tuple[float, str] | None
    limit_text: str
    fails_undecided: bool = False

    @classmethod
    def parse(
        cls, words: Sequence[str], fail_over: str | None, floor: str | None, *, fails_undecided: bool = False
    ) -> Gates:
        """What the options say.

        Raises:
            UsageError: They cannot be understood.
        """
        if floor is not None and fail_over is None and not words:
            raise UsageError("--floor needs --fail-over or --gate", hint="For example: --fail-over 5% --floor 20us")
        percent, _ = _number("--fail-over", fail_over or "0", ("%",))
        least = None if floor is None else _number("--floor", floor, tuple(_TIMES_NS))
        gates = tuple(dict.fromkeys(_gate(word) for word in words))
        is_total = not gates and fail_over is not None
        text = f"{percent:g} %" + (f" and {floor}" if floor else "")
        return cls((Gate(Gated.TOTAL),) if is_total else gates, percent, least, text, fails_undecided)

    def verdicts(self, comparison: Comparison, before: Sequence[Profile], after: Sequence[Profile]) -> list[Verdict]:
        """What is found at each gate."""
        n_gates, found = len(self.gates), []
        for gate in self.gates:
            limit = self._limit(
                gate, "ns" if gate.what in (Gated.WALL, Gated.REGION) else comparison.unit, comparison.metric
            )
            if gate.what is Gated.ROWS:
                found.append(rows_verdict(comparison, limit, n_gates))
            else:
                found.append(verdict_of(gate, before, after, comparison.metric, limit, named_frames, n_gates))
        return found

    def judge(self, verdicts: Sequence[Verdict], comparison: Comparison) -> None:
        """Say what each gate found.

        Raises:
            GateExceeded: A limit was exceeded; names the first one.
        """
        exceeded = [verdict for verdict in verdicts if verdict.n_exceeded]
        compared = [verdict for verdict in verdicts if verdict.at_most is None]
        undecided = [verdict for verdict in verdicts if verdict.is_undecided]
        said = [("passed", verdict) for verdict in verdicts if not verdict.n_exceeded and not verdict.is_undecided]
        said += [("not decided", verdict) for verdict in undecided]
        said += [("exceeded", verdict) for verdict in exceeded[1:]]
        lines = [f"{word}: {_subject(verdict, comparison)}: {judged_text(verdict)}" for word, verdict in said]
        if undecided:
            lines.append(_UNDECIDED)
        if compared and comparison.n_before == comparison.n_after == 1:
            lines.append(_ONE_RUN)
        if lines:
            say(lines)
        if exceeded:
            subject, text = _subject(exceeded[0], comparison), judged_text(exceeded[0])
            limit = "exceeded" if exceeded[0].gate.at_most else f"over the limit of {self.limit_text}"
            raise GateExceeded(f"{subject} is {limit}: {text}")
        if undecided and self.fails_undecided:
            raise GateExceeded(
                f"{undecided[0].gate} may be over the limit of {self.limit_text}",
                hint="Record more runs of each, in turn, or on a quieter machine",
            )

    @staticmethod
    def to_json(verdicts: Sequence[Verdict]) -> dict[str, Any]:
        """JSON values: one object for each gate."""
        return {
            "n_exceeded": sum(verdict.n_exceeded for verdict in verdicts),
            "gates": [verdict_json(verdict) for verdict in verdicts],
        }

    @property
    def need_no_baseline(self) -> bool:
        """Whether each says what a value may be at most, whatever it was before."""
        return bool(self.gates) and all(gate.at_most for gate in self.gates)

    def _limit(self, gate: Gate, unit: str, metric: str) -> Limit:
        if gate.at_most:
            option = "--gate"
            return Limit(0.0, at_most=_in_unit(option, _number(option, gate.at_most, tuple(_TIMES_NS)), unit, metric))
        floor = None if self.floor is None else _in_unit("--floor", self.floor, unit, metric)
        return Limit(self.percent, floor)


def _in_unit(option: str, number: tuple[float, str], unit: str, metric: str) -> float:
    """What the user wrote, in the unit of the metric, which is that of a number without one.

    Raises:
        UsageError: The user wrote a time, and the metric is none.
    """
    value, of = number
    if not of and unit in _TIMES_NS and option == "--gate":
        raise UsageError(f"--gate: {value:g} of what? {metric} is a time", hint=f"For example: {value:g}ms")
    if not of:
        return value
    if unit not in _TIMES_NS:
        raise UsageError(f"{metric} is not a time, so {option} takes no unit", hint=f"For example: {option} {value:g}")
    return value * _TIMES_NS[of] / _TIMES_NS[unit]


def _subject(verdict: Verdict, comparison: Comparison) -> str:
    """What was judged; of rows the worst."""
    if verdict.gate.what is not Gated.ROWS or not verdict.n_exceeded:
        return str(verdict.gate)
    return path_text(comparison, verdict.worst, stream_style(sys.stderr), None)


def _gate(word: str) -> Gate:
    what, _, at_most = word.rpartition("=")
    if not what or not _NUMBER.fullmatch(at_most):  # names may have a =
        what, at_most = word, ""
    kind, colon, name = what.partition(":")
    if what == _STEP:
        return Gate(Gated.REGION, _STEP, at_most)
    known = {gated.value: gated for gated in Gated}
    fits = kind in known and bool(colon) == bool(name) == (known[kind] in _NAMED)
    if not fits or (at_most and known[kind] is Gated.ROWS):
        raise UsageError(f"--gate: {word!r} is nothing that can be judged", hint=_KNOWN)
    return Gate(known[kind], name, at_most)


def _number(option: str, text: str, units: tuple[str, ...]) -> tuple[float, str]:
    match = _NUMBER.fullmatch(text.strip())
    unit = match["unit"].strip() if match else ""
    if match is None or unit not in ("", *units):
        known = ", ".join(f"5{unit}" for unit in units)
        raise UsageError(f"{option}: {text!r} is not a number with a known unit", hint=f"For example: {known}")
    return float(match["number"]), unit
