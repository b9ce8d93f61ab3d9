"""A profile with all that analyses say of it, as the pages of the browser read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bragg.analyze.answer import answer
from bragg.analyze.engine import findings
from bragg.analyze.idle_paths import IDLE_METRICS, with_added_up_idle
from bragg.analyze.imports import imports_apart
from bragg.analyze.kernel_choice import every_kernel
from bragg.analyze.program_lines import program_files, with_times
from bragg.analyze.ranks.answer import RanksAnswer
from bragg.analyze.report import answered
from bragg.analyze.roofline import roofline
from bragg.analyze.source_lines import annotate_stages
from bragg.analyze.wall.steady import is_host_first, steady_profile
from bragg.errors import UsageError
from bragg.model import Profile
from bragg.model.sample_stacks import with_sample_stacks
from bragg.views.text.analysis_text import rest_sentence
from bragg.views.text.answer_text import fact_rows, lack_lines, sentences
from bragg.views.text.folding import OWN_ROW, fold_marks
from bragg.views.text.variants import rows_of_frames
from bragg.views.web.code import code_of, program_code_of
from bragg.views.web.findings import findings_of
from bragg.views.web.first_look import big_numbers, wall_of
from bragg.views.web.hot_tables import hot_tables
from bragg.views.web.payload import Analyses, Summary, pack
from bragg.views.web.points import roofline_of
from bragg.views.web.ranks import ranks_of


def report_payload(
    profile: Profile,
    title: str,
    difference: Mapping[str, Any] | None = None,
    ranks: RanksAnswer | None = None,
) -> bytes:
    """Everything that a page shows of a profile.

    Args:
        profile: What to show.
        title: What the reader calls it: the name of its file.
        difference: How it differs from another one, as `views/web/diff.py` writes it; None: nothing is compared.
        ranks: The ranks of its job compared; None: they are not.
    """
    profile = with_sample_stacks(profile, fold_marks(profile).mark >= OWN_ROW)
    reason = answered(profile)
    # What `bragg analyze` says has a place of its own.
    named = {finding.text for finding in reason.analysis.findings}
    hints = [finding for finding in findings(reason.evidence) if finding.text not in named]
    found = answer(reason.evidence, rows_of_frames(profile.tree.frames))
    steady = found.wall.steady if found.wall else None
    host_first = is_host_first(profile, steady)
    # Of a program without a GPU the part that is shown first is what it did beside imports.
    ran, imports_ns = imports_apart(profile)
    analyses = Analyses(
        title=title,
        summary=Summary(
            # The bar of the wall time says its line.
            [
                *filter(None, [rest_sentence(reason)]),
                *sentences(profile, found)[found.wall is not None :],
                *(f"{finding.text}." for finding in hints),
            ],
            fact_rows(profile),
            lack_lines(profile, found),
            big_numbers(profile, found, reason),
            wall_of(profile, found),
            hot_tables(profile, host_first=host_first),
        ),
        kernels=reason.evidence.kernels,
        code=_code(profile),
        roofline=_roofline(profile),
        difference=difference,
        findings=findings_of(profile, reason, (steady.begins_ns, steady.ends_ns) if steady else None),
        steady=steady_profile(profile, steady) if steady else ran if imports_ns else None,
        ranks=None if ranks is None else ranks_of(ranks, profile.run.rank),
        opens="host_time" if host_first or imports_ns else "",
    )
    if host_first and (waits := with_added_up_idle(profile, steady)):
        # Without a timeline, host time is that of the whole run: of imports, most of all.
        profile, analyses = waits, replace(analyses, opens=IDLE_METRICS[0])
    return pack(profile, analyses=analyses)


def _code(profile: Profile) -> list[dict[str, Any]]:
    """Kernels, and files of the program that took any time."""
    programs = (program_code_of(with_times(profile, file)) for file in program_files(profile))
    return [
        *code_of(annotate_stages(profile, kernel) for kernel in every_kernel(profile)),
        *(each for each in programs if each["panes"][0]["samples"]),
    ]


def _roofline(profile: Profile) -> Mapping[str, Any] | None:
    """None where nothing has flops or bytes."""
    try:
        return roofline_of(roofline(profile))
    except UsageError:
        return None
