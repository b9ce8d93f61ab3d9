"""A run in a few lines: its parts, what bounds it, and what to change first."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.report import answered, answered_by
from bragg.analyze.wall.parts import wall_parts
from bragg.model import Finding, Profile
from bragg.views.text.analysis_text import best_findings, best_lines
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.style import Style
from bragg.views.text.wall_line import wall_lines

_N_CAUSES, _N_TOLD = 3, 2
_MANY_SLICES, _MANY_NODES = 300_000, 40_000  # the rules take 0.8 s for them


def story_lines(profile: Profile, style: Style) -> list[str]:
    """Program and machine, the wall time, what bounds it, and the best findings with the change that each asks for."""
    return list(_lines(profile, style))


def _lines(profile: Profile, style: Style) -> Iterator[str]:
    facts, parts, answer = RunFacts(profile.meta), wall_parts(profile), answered(profile)
    title = ", ".join(filter(None, (facts.command, ", ".join(facts.devices), facts.duration_text())))
    yield style.bold(style.cut(title, style.width))
    yield from wall_lines(parts, style)
    yield from best_lines(answer, best_findings(answer, _N_TOLD), style, _N_TOLD)


def answer_lines(evidence: Evidence, style: Style) -> list[str]:
    """What bounds the steady state, or a program without a GPU, and the first finding.

    Empty where it is not known, or would take long to find.
    What is said of the whole program may save more than a cause in it, which stands first: then both are shown.
    """
    profile = evidence.profile
    is_known = evidence.steady is not None or not profile.measured("gpu_time")
    if not is_known or len(profile.slices) > _MANY_SLICES or len(profile.tree) > _MANY_NODES:
        return []
    answer = answered_by(evidence)
    best = best_findings(answer, _N_CAUSES)
    shown = [each for each in best if each is best[0] or _gain(each) > _gain(best[0])]
    return list(best_lines(answer, shown, style))


def _gain(finding: Finding) -> float:
    return finding.gain.share if finding.gain and not finding.gain.is_once else 0.0
