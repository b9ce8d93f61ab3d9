"""A profile with all that analyses say of it, as the pages of the browser read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bragg.analyze.answer import answer
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import findings
from bragg.analyze.kernel_choice import every_kernel
from bragg.analyze.kernel_facts import kernel_facts
from bragg.analyze.report import answered
from bragg.analyze.roofline import roofline
from bragg.analyze.source_lines import annotate_stages
from bragg.errors import UsageError
from bragg.model import Profile
from bragg.views.text.analysis_text import LEAST_GAIN, bounds_sentence, shown_findings
from bragg.views.text.answer_text import fact_rows, lack_lines, sentences
from bragg.views.text.variants import rows_of_frames
from bragg.views.web.code import code_of
from bragg.views.web.payload import Analyses, Summary, pack
from bragg.views.web.points import roofline_of

__all__ = ["report_payload"]


def report_payload(profile: Profile, title: str, difference: Mapping[str, Any] | None = None) -> bytes:
    """Everything that a page shows of a profile.

    Args:
        profile: What to show.
        title: What the reader calls it: the name of its file.
        difference: How it differs from another one, as `views/web/diff.py` writes it; None: nothing is compared.
    """
    kernels, reason = kernel_facts(profile), answered(profile)
    named = {finding.text for finding in reason.worth(LEAST_GAIN)}
    hints = [finding for finding in findings(Evidence(profile)) if finding.text not in named]
    bounds = [] if reason.bounds.busy is None else [bounds_sentence(reason.bounds)]
    found = answer(profile, kernels, rows_of_frames(profile.tree.frames))
    analyses = Analyses(
        title=title,
        summary=Summary(
            [*sentences(profile, found), *bounds, *(f"{finding.text}." for finding in hints)],
            fact_rows(profile),
            lack_lines(profile, found),
        ),
        kernels=kernels,
        code=code_of(annotate_stages(profile, kernel) for kernel in every_kernel(profile)),
        roofline=_roofline(profile),
        difference=difference,
        findings=shown_findings(reason.worth(LEAST_GAIN)),
    )
    return pack(profile, analyses=analyses)


def _roofline(profile: Profile) -> Mapping[str, Any] | None:
    """None where nothing has flops or bytes."""
    try:
        return roofline_of(roofline(profile))
    except UsageError:
        return None
