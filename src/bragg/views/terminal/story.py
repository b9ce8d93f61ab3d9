"""A run in ten lines: its parts, what bounds it, and what to change first."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.report import answered
from bragg.analyze.wall.parts import wall_parts
from bragg.model import Profile
from bragg.views.text.analysis_text import LEAST_GAIN, advice_text, best_lines
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.style import Style
from bragg.views.text.wall_line import wall_line

__all__ = ["story_lines"]

_N_CAUSES = 3
_INDENT = " " * 11


def story_lines(profile: Profile, style: Style) -> list[str]:
    """Program and machine, the wall time, what bounds it, and the best findings with the change that each asks for."""
    return [style.cut(line, style.width) for line in _lines(profile, style)]


def _lines(profile: Profile, style: Style) -> Iterator[str]:
    facts, parts, answer = RunFacts(profile.meta), wall_parts(profile), answered(profile)
    yield style.bold(", ".join(filter(None, (facts.command, ", ".join(facts.devices), facts.duration_text()))))
    if parts is not None:
        yield wall_line(parts)
    bounds, *causes = best_lines(answer.bounds, answer.analysis, style, _N_CAUSES)
    yield bounds
    hints = [finding.hint for finding in answer.worth(LEAST_GAIN) if finding.gain is not None]
    for cause, hint in zip(causes, hints, strict=False):
        yield cause
        if hint:
            yield style.dim(f"{_INDENT}{advice_text(hint)}")
