"""What the page says first: a few large numbers, the parts of the wall time, and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bragg.analyze.answer import Answer
from bragg.analyze.report import Answered
from bragg.analyze.wall.step_times import step_times
from bragg.analyze.wall.wall_time import Steady, WallParts
from bragg.model import Confidence, Finding, Profile
from bragg.model.finding import percent_text
from bragg.views.text.analysis_text import LEAST_GAIN
from bragg.views.text.finding_text import gain_text
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.units import count_text, share_text, time_text, value_text
from bragg.views.text.wall_line import busy_text, wall_line
from bragg.views.web.findings import gain_of
from bragg.views.web.payload import timeline_zero_ns

_UNITS = {"gpu_time": "GPU time", "host_time": "host time"}


def big_numbers(profile: Profile, answer: Answer, answered: Answered) -> list[dict[str, str]]:
    """At most five: value, what it is, and of what."""
    return [
        {"value": value, "name": name, "about": about} for value, name, about in _numbers(profile, answer, answered)
    ]


def _numbers(profile: Profile, answer: Answer, answered: Answered) -> Iterator[tuple[str, str, str]]:
    parts, facts = answer.wall, RunFacts(profile.meta)
    steady = parts.steady if parts else None
    if parts:
        yield time_text(parts.wall_ns), "wall time", ""
    elif facts.duration_text():
        yield facts.duration_text(), "wall time", ""
    if steady and steady.n_steps:
        yield (
            time_text(steady.step_ns),
            f"a {steady.step}",
            f"{count_text(steady.n_steps, steady.step)} in the steady state",
        )
    elif answered.bounds.host_ns and answered.bounds.n_steps:
        yield _step_of_host(profile, answered)
    if steady and steady.busy:
        yield _busy(steady), "GPU busy", "in the steady state"
    elif facts.gpu_busy:
        yield share_text(max(facts.gpu_busy.values())), "GPU busy", "from its first to its last work"
    if answer.metric in _UNITS and answer.total:
        unit = profile.metrics[answer.metric].unit
        whole = "without imports" if answer.imports_ns else "in the whole run"
        where = "in the steady state" if answer.is_steady else whole
        yield value_text(answer.total, unit), _UNITS[answer.metric], where
    best = max((each for each in answered.worth(LEAST_GAIN) if each.gain is not None), key=_saves, default=None)
    if best is not None:
        sure = "heuristic: " if best.confidence is Confidence.HEURISTIC else ""
        yield gain_text(best), "can be saved", f"{sure}{best.rule}{_of_what(best, answered, parts)}"


def _step_of_host(profile: Profile, answered: Answered) -> tuple[str, str, str]:
    """A step without a GPU: the median one, where a few that took much longer make the mean."""
    bounds, times = answered.bounds, step_times(profile)
    mean, steps = time_text(bounds.of_ns / bounds.n_steps), count_text(bounds.n_steps, bounds.step)
    if uneven := times.uneven() if times else None:
        return time_text(uneven[0]), f"the median {bounds.step}", f"{steps}, on average {mean}"
    return mean, f"a {bounds.step}", steps


def _saves(finding: Finding) -> tuple[bool, float]:
    """How much of the time of steps a finding saves, else of the run."""
    return (not finding.gain.is_once, finding.gain.share) if finding.gain else (False, 0.0)


def _of_what(finding: Finding, answered: Answered, parts: WallParts | None) -> str:
    """What the share of a gain is of, where it is not said with it."""
    if finding.gain is None or finding.gain.is_once:
        return ""
    if parts is None or parts.steady is None:
        return f", {gain_of(answered, finding)}"
    return f", of the steady state ({percent_text(parts.steady.duration_ns / parts.wall_ns)} of the run)"


def _busy(steady: Steady) -> str:
    return busy_text(steady.busy).removeprefix("GPU busy ") if len(steady.busy) == 1 else _range(steady)


def _range(steady: Steady) -> str:
    shares = sorted(steady.busy.values())
    return f"{share_text(shares[0])} to {share_text(shares[-1])}"


def wall_of(profile: Profile, answer: Answer) -> dict[str, Any] | None:
    """The parts of the wall time, which add up, and where the steady state is in the timeline; None: not known."""
    parts = answer.wall
    if parts is None:
        return None
    steady = parts.steady
    zero_ns = timeline_zero_ns(profile)
    return {
        "wall_ns": parts.wall_ns,
        "text": wall_line(parts),
        "parts": [{"name": name, "duration_ns": lasts_ns} for name, lasts_ns in parts.durations()],
        "steady": [steady.begins_ns - zero_ns, steady.ends_ns - zero_ns] if steady and len(profile.slices) else None,
    }
