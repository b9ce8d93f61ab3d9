"""The summaries of a job's ranks, from its directory or from files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bragg.errors import BraggError, UsageError
from bragg.formats.job.directory import is_job, read_job
from bragg.formats.job.summaries import read_summary
from bragg.model.job import Rank
from bragg.model.rank_summary import RankSummary

if TYPE_CHECKING:
    from bragg.analyze.report import Answered

__all__ = ["read_ranks", "with_rank_findings"]


def read_ranks(paths: Sequence[Path]) -> tuple[list[RankSummary], list[str]]:
    """The summary of each rank, and what could not be used, a line each.

    Args:
        paths: The directory of a job, or files.

    Raises:
        BadFile: There is no job in the directory.
    """
    problems: list[str] = []
    if len(paths) == 1 and (paths[0].is_dir() or is_job(paths[0])):
        job = read_job(paths[0])
        problems += job.problems
        ranks: list[Rank | Path] = list(job.ranks)
    else:
        ranks = list(paths)
    found = []
    for rank in ranks:
        try:
            if isinstance(rank, Rank):
                found.append(replace(_read(rank.path, rank.rank), rank=rank.rank, host=rank.host, role=rank.role))
            else:
                found.append(_read(rank, None))
        except BraggError as error:
            problems.append(error.message)
    return list(_one_each(found, problems)), problems


def with_rank_findings(answer: Answered, path: Path) -> Answered:
    """The answer for one rank with what comparing it with the others of its job found; of other files as it is."""
    if not is_job(path):
        return answer
    from bragg.analyze.engine import ranked
    from bragg.analyze.ranks.answer import compare_ranks
    from bragg.analyze.ranks.findings import findings_of

    summaries, problems = read_ranks([path])
    found = findings_of(compare_ranks(summaries, problems)) if len(summaries) > 1 else []
    return replace(answer, analysis=replace(answer.analysis, findings=ranked([*found, *answer.analysis.findings])))


def _read(path: Path, number: int | None) -> RankSummary:
    """The summary of a file, or one made of the whole file."""
    summary = read_summary(path)
    if summary is not None:
        return summary
    from bragg import formats
    from bragg.analyze.ranks.summarize import summarize

    profile = formats.load(path)
    if number is None and profile.run.rank is None:
        raise UsageError(f"{path} does not say which rank it is")
    return summarize(profile, number)


def _one_each(found: Sequence[RankSummary], problems: list[str]) -> Iterator[RankSummary]:
    """Ranks that one profile alone claims to be."""
    count = Counter(summary.rank for summary in found)
    for number in sorted(number for number, n_profiles in count.items() if n_profiles > 1):
        problems.append(f"{count[number]} profiles say that they are of rank {number}: none of them is used")
    return (summary for summary in found if count[summary.rank] == 1)
