"""Directories of jobs, for tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from bragg import formats
from bragg.formats.job.directory import rank_file_name, write_job
from bragg.model import Profile
from bragg.model.ranks.job import Rank
from tests.support.profiles import profile_from_text


def rank_profile(text: str, rank: int, world: int = 2, **meta: Any) -> Profile:
    """The profile of one rank of a job."""
    place = {"launcher": "torchrun", "run_id": "a", **meta.pop("job", {})}
    facts = {"rank": rank, "ranks": world, "host": "n1", "pid": 100 + rank, "job": place, **meta}
    return replace(profile_from_text(text), meta=facts)


def write_rank(directory: Path, profile: Profile, name: str = "") -> Rank:
    """Write the profile of a rank under its name."""
    path = directory / (name or rank_file_name(profile.run.rank or 0, profile.run.place.count("restarts")))
    directory.mkdir(exist_ok=True)
    formats.export(profile, "bragg", path)
    rank = Rank.of(profile.run, path)
    assert rank is not None
    return rank


def job_of(directory: Path, *texts: str, **meta: Any) -> Path:
    """The directory of a job whose ranks did what the texts say."""
    profiles = [rank_profile(text, number, len(texts), **meta) for number, text in enumerate(texts)]
    write_job(directory, [write_rank(directory, profile) for profile in profiles])
    return directory
