"""A timeline of several processes, written as the directory of a job with a profile for each of them."""

from __future__ import annotations

from pathlib import Path

from bragg.errors import BadFile, UsageError
from bragg.formats.bragg import write as write_profile
from bragg.formats.format import Format
from bragg.formats.job.directory import rank_file_name, write_job
from bragg.formats.timelines.processes import ranks_within
from bragg.model import Profile
from bragg.model.ranks.job import Rank


def write(profile: Profile, directory: Path) -> None:
    """Write each process of a profile as a rank.

    Raises:
        UsageError: Its timeline is of one process, or it has none.
        BadFile: The directory cannot be written.
    """
    profiles = ranks_within(profile)
    if not profiles:
        raise UsageError("a job needs the timelines of two processes, and this profile has at most one")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadFile(f"cannot write {directory}: {error.strerror}", hint="Choose another place") from error
    ranks = []
    for each in profiles:
        path = directory / rank_file_name(each.run.rank or 0)
        write_profile(each, path)
        if rank := Rank.of(each.run, path):
            ranks.append(rank)
    write_job(directory, ranks)


FORMAT = Format(
    suffix=".job",
    description="the directory of a job, a profile for each process",
    next_step="bragg ranks {file}",
    write=write,
)
