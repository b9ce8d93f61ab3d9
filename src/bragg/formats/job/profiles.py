"""The profiles of a job by rank, for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bragg.model import Profile
from bragg.model.ranks.job import Job, Rank


class JobProfiles(Mapping[int, Profile]):
    """The profile of each rank, by its number; read from its file at each access, so that a thousand need no memory.

    Args:
        job: What was read of the directory.
        read: Reads a profile.

    Attributes:
        job: The ranks, with host, process and coordinates; `job.problems` says what is missing or does not fit.
    """

    def __init__(self, job: Job, read: Callable[[Path], Profile]) -> None:
        self.job = job
        self._ranks: dict[int, Rank] = {rank.rank: rank for rank in job.ranks}
        self._read = read

    def __getitem__(self, rank: int) -> Profile:
        """Read a profile.

        Raises:
            KeyError: There is no such rank, or its profile could not be used.
            BadFile: The profile is damaged.
        """
        return self._read(self._ranks[rank].path)

    def __contains__(self, rank: object) -> bool:
        return rank in self._ranks

    def __iter__(self) -> Iterator[int]:
        return iter(self._ranks)

    def __len__(self) -> int:
        return len(self._ranks)

    def __repr__(self) -> str:
        return f"<JobProfiles of {len(self)} ranks: {self.job.directory}>"
