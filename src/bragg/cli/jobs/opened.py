"""The profiles of a job's ranks, and one of them that stands for all."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bragg.cli.console import say, stream_style
from bragg.cli.progress import working
from bragg.errors import BadFile, BraggError, UsageError
from bragg.model.ranks.job import Job, Rank, named_ranks

if TYPE_CHECKING:
    from bragg.model import Profile


@dataclass(frozen=True, eq=False)
class OpenedJob:
    """A job that was read.

    Attributes:
        job: Its ranks, of which each has a profile that could be read.
        profiles: One of each rank, in their order.
        metric: What ranks are compared by: GPU time if there is any, else host time.
    """

    job: Job
    profiles: list[Profile]
    metric: str

    @cached_property
    def _collective_ns(self) -> list[float]:
        """Of each rank the GPU time of collectives, which is most on the ranks that wait."""
        import numpy as np

        from bragg.analyze.ranks.collectives import kernel_calls

        if self.metric != "gpu_time":
            return [0.0] * len(self.profiles)
        found = [kernel_calls(each, np.zeros(len(each.tree), np.int64)).is_communication for each in self.profiles]
        return [
            float(each.own(self.metric)[is_one].sum()) if self.metric in each.metrics else 0.0
            for each, is_one in zip(self.profiles, found, strict=True)
        ]

    @cached_property
    def _late(self) -> int | None:
        """The index of the rank that the others wait for; None: none is named."""
        from bragg.cli.rank_files import compared_ranks, late_rank
        from bragg.formats.job.directory import is_recorded_job

        number = late_rank(compared_ranks(self.job.directory)) if is_recorded_job(self.job.directory) else None
        numbers = [str(rank.rank) for rank in self.job.ranks]
        return numbers.index(number) if number in numbers else None

    @property
    def compared_by(self) -> str:
        """What `total` counts."""
        return f"{self.metric} outside collectives" if any(self._collective_ns) else self.metric

    def total(self, index: int) -> float:
        """What a rank has of the metric, without collectives."""
        profile = self.profiles[index]
        total = profile.total(self.metric) if self.metric in profile.metrics else 0.0
        return total - self._collective_ns[index]

    def why_worst(self, index: int) -> str:
        """Why a rank is the worst one."""
        return "which the others wait for" if index == self._late else f"with the most {self.compared_by}"

    def chosen(self, wanted: str) -> int:
        """The index of a rank.

        Args:
            wanted: Its number; `worst`: the one that the others wait for, if there is one; else that, `best` and
                `median` are by `total`.

        Raises:
            UsageError: There is no such rank.
        """
        numbers = [rank.rank for rank in self.job.ranks]
        if wanted.isdecimal() and int(wanted) in numbers:
            return numbers.index(int(wanted))
        by_total = sorted(range(len(self.profiles)), key=lambda index: (index != self._late, -self.total(index)))
        named = {"worst": by_total[0], "best": by_total[-1], "median": by_total[len(by_total) // 2]}
        if wanted in named:
            return named[wanted]
        known = f"{numbers[0]} to {numbers[-1]}, worst, best, median"
        raise UsageError(f"there is no rank {wanted!r} in {self.job.directory}", hint=f"Known: {known}")


def open_job(directory: Path, *, trace: bool = False) -> OpenedJob:
    """Read the profiles of all ranks; those that cannot be read are left out, and `Job.problems` says so.

    Args:
        directory: Of the job.
        trace: Read timelines, too.

    Raises:
        BadFile: No profile can be read.
    """
    from bragg import formats
    from bragg.formats.job.directory import read_job

    job = read_job(directory)
    ranks: list[Rank] = []
    profiles: list[Profile] = []
    problems = list(job.problems)
    with working(f"Reading {directory}"):
        for rank in job.ranks:
            try:
                profiles.append(formats.load(rank.path, trace=trace))
                ranks.append(rank)
            except BraggError as error:
                problems.append(error.message)
    if not profiles:
        raise BadFile(f"no profile in {directory} can be read: {problems[-1]}", hint="Record the job again")
    cut = [rank.rank for rank, profile in zip(ranks, profiles, strict=True) if profile.run.is_cut_short]
    if cut:
        problems.append(
            f"the recording of {named_ranks(cut)} has no end, so sums are too low: killed, or still running"
        )
    job = replace(job, ranks=tuple(ranks), problems=tuple(problems))
    has_gpu = any(profile.measured("gpu_time") for profile in profiles)
    return OpenedJob(job, profiles, "gpu_time" if has_gpu else profiles[0].main_metric)


def say_problems(job: Job) -> None:
    """Say on stderr what is missing or does not fit."""
    style = stream_style(sys.stderr)
    if job.problems:
        say([style.warning(f"warning: {problem}") for problem in job.problems])


def one_rank(directory: Path, wanted: str | None = None) -> Path:
    """The profile of one rank of a job, where all of them cannot be shown; what is wrong with the job goes to stderr.

    Args:
        directory: Of the job.
        wanted: As in `OpenedJob.chosen`; None: the worst, and stderr says so.

    Raises:
        UsageError: There is no such rank.
        BadFile: No profile can be read.
    """
    opened = open_job(directory)
    say_problems(opened.job)
    index = opened.chosen(wanted or "worst")
    rank = opened.job.ranks[index]
    if wanted is None:
        style = stream_style(sys.stderr)
        other = opened.job.ranks[0].path
        text = f"note: this is rank {rank.rank} of {len(opened.job.ranks)}, {opened.why_worst(index)}"
        say([style.dim(f"{text}; any other can be named: {other}")])
    return rank.path
