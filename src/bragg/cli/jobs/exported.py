"""`bragg export JOB -f perfetto`: the timelines of a job's ranks in one file."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bragg.cli.console import say, stream_style
from bragg.cli.jobs.opened import OpenedJob, open_job, say_problems
from bragg.errors import UsageError

if TYPE_CHECKING:
    from bragg.analyze.ranks.clocks import Alignment
    from bragg.model import Profile
    from bragg.model.ranks.job import Rank


_MOST = 16
"""So many timelines are shown without a choice; of more the worst, the median and the best of each role."""
_N_NAMED = 8


def export_ranks(directory: Path, wanted: str | None, target: Path, *, has_stages: bool = False) -> int:
    """Write the timelines of ranks into one Perfetto trace; what is left out goes to stderr.

    Args:
        directory: Of the job.
        wanted: Numbers of ranks, `worst`, `best`, `median`, separated by commas, or `all`; None: all of a small job.
        target: The file.
        has_stages: Whether GPU work is written as stages of GPUs, too.

    Returns:
        How many ranks were written.

    Raises:
        UsageError: There is no such rank, or none has a timeline.
        BadFile: The file cannot be written.
    """
    from bragg.analyze.ranks.aligned import groups_of
    from bragg.analyze.ranks.clocks import alignments, clock_notes
    from bragg.analyze.ranks.collectives import collective_slices
    from bragg.cli.rank_files import read_ranks
    from bragg.formats.perfetto.ranks import write_ranks

    opened = open_job(directory)
    say_problems(opened.job)
    indices = _chosen(opened, wanted)
    ranks = [opened.job.ranks[index] for index in indices]
    without: list[Rank] = []
    summaries = sorted(read_ranks([directory]).summaries, key=lambda summary: summary.rank)
    found = alignments(summaries, groups_of(summaries))
    clocks = {summary.rank: clock for summary, clock in zip(summaries, found, strict=True)}
    write_ranks(
        _timelines(ranks, clocks, without),
        target,
        opened.job.run_id,
        opened.job.hosts,
        collective_slices,
        has_stages=has_stages,
    )
    style = stream_style(sys.stderr)
    notes = [style.dim(f"note: {note}") for note in (*_notes(opened, ranks, wanted), *clock_notes(summaries, found))]
    notes += [style.warning(f"warning: rank {rank.rank} has no timeline and is left out") for rank in without]
    if notes:
        say(notes)
    return len(ranks) - len(without)


def _timelines(
    ranks: list[Rank], clocks: Mapping[int, Alignment | None], without: list[Rank]
) -> Iterator[tuple[Rank, Profile]]:
    """Each rank with its profile, by the clock of the first one where that is known.

    Ranks without a timeline go to `without`.

    Raises:
        UsageError: None has one.
    """
    from bragg import formats
    from bragg.analyze.ranks.clocks import on_first_clock

    for rank in ranks:
        profile = formats.load(rank.path)
        if len(profile.slices):
            clock = clocks.get(rank.rank)
            yield rank, profile if clock is None else on_first_clock(profile, clock)
        else:
            without.append(rank)
    if len(without) == len(ranks):
        raise UsageError("no rank of this job has a timeline", hint="Record it again with: bragg run --data trace")


def _chosen(opened: OpenedJob, wanted: str | None) -> list[int]:
    """Indices of ranks, ascending."""
    n_ranks = len(opened.job.ranks)
    if wanted == "all" or (wanted is None and n_ranks <= _MOST):
        return list(range(n_ranks))
    if wanted is not None:
        return sorted({opened.chosen(word.strip()) for word in wanted.split(",")})
    roles: dict[tuple[tuple[str, int], ...], list[int]] = defaultdict(list)
    for index, rank in enumerate(opened.job.ranks):
        roles[rank.role].append(index)
    found: set[int] = set()
    for members in roles.values():
        by_total = sorted(members, key=opened.total)
        found |= {by_total[0], by_total[len(by_total) // 2], by_total[-1]}
    return sorted(found)


def _notes(opened: OpenedJob, ranks: list[Rank], wanted: str | None) -> Iterator[str]:
    n_all = len(opened.job.ranks)
    if wanted is None and len(ranks) < n_all:
        named = ", ".join(str(rank.rank) for rank in ranks[:_N_NAMED]) + (", …" if len(ranks) > _N_NAMED else "")
        yield (
            f"of {n_all} ranks those with most, median and least {opened.compared_by} of each role: {named}; "
            "others: --rank 3,7 or --rank all"
        )
