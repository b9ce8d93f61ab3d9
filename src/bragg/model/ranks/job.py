"""A distributed job: its ranks, where they ran, and the files of what they did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

from bragg.model.facts import Facts
from bragg.model.meta.command_line import program_of
from bragg.model.meta.run import Run

_N_NAMED = 3


@dataclass(frozen=True)
class Rank:
    """One rank of a job.

    Attributes:
        rank: Its number in the job.
        path: Its profile.
        local_rank: Its number on its host; None: not known.
        host: Name of its machine; empty: not known.
        pid: Its process id there; None: not known.
        restarts: How often the launcher had started the ranks anew before this process.
        coordinates: Its place along each axis of parallelism: `{"dp": 4, "tp": 1}`; empty: not known.
        gpus: UUIDs of the GPUs that it used.
        helpers: Profiles of processes that it started.
        run_id: What the launcher calls the run; empty: not known.
        launcher: What started it; empty: not known.
        world: How many ranks the job has, as the process was told; None: not known.
        bragg: Version of bragg that recorded it; empty: not known.
        program: Name of the script or module that it ran; empty: not known.
    """

    rank: int
    path: Path
    local_rank: int | None = None
    host: str = ""
    pid: int | None = None
    restarts: int = 0
    coordinates: Mapping[str, int] = field(default_factory=dict)
    gpus: tuple[str, ...] = ()
    helpers: tuple[Path, ...] = ()
    run_id: str = ""
    launcher: str = ""
    world: int | None = None
    bragg: str = ""
    program: str = ""

    @classmethod
    def of(cls, run: Run, path: Path) -> Rank | None:
        """The rank that a process was, as its profile tells; None: it was none.

        Args:
            run: Facts of the profile.
            path: Its file.
        """
        if run.rank is None or run.rank < 0:
            return None
        return cls.from_json({**run.place.values(), **_facts_of(run)}, path)

    @classmethod
    def from_json(cls, row: Mapping[str, Any], path: Path) -> Rank | None:
        """A row of `job.json`; None: it names no rank."""
        facts = Facts(row)
        number = facts.integer("rank")
        if number is None or number < 0:
            return None
        axes = facts.table("coordinates")
        return cls(
            number,
            path,
            local_rank=facts.integer("local_rank"),
            host=facts.text("host"),
            pid=facts.integer("pid"),
            restarts=facts.count("restarts"),
            coordinates={axis: at for axis in axes if (at := axes.integer(axis)) is not None},
            gpus=tuple(facts.texts("gpus")),
            helpers=tuple(path.parent / name for name in facts.texts("helpers") if PurePath(name).name == name),
            run_id=facts.text("run_id"),
            launcher=facts.text("launcher"),
            world=facts.integer("world"),
            bragg=facts.text("bragg"),
            program=facts.text("program"),
        )

    def to_json(self) -> dict[str, Any]:
        """The row of `job.json`, without what is not known."""
        row = {
            "rank": self.rank,
            "file": self.path.name,
            "local_rank": self.local_rank,
            "host": self.host,
            "pid": self.pid,
            "restarts": self.restarts,
            "coordinates": dict(self.coordinates),
            "gpus": list(self.gpus),
            "helpers": [path.name for path in self.helpers],
            "run_id": self.run_id,
            "launcher": self.launcher,
            "world": self.world,
            "bragg": self.bragg,
            "program": self.program,
        }
        return {name: value for name, value in row.items() if value not in (None, "", [], {})}

    @property
    def role(self) -> tuple[tuple[str, int], ...]:
        """What ranks of equal work have in common: the coordinates other than those of data parallelism."""
        return tuple(sorted((axis, at) for axis, at in self.coordinates.items() if not axis.startswith("dp")))

    @property
    def label(self) -> str:
        """How the rank is shown: `rank 17 (nid001234) dp=4 tp=1`."""
        host = f" ({self.host})" if self.host else ""
        return f"rank {self.rank}{host}{''.join(f' {axis}={at}' for axis, at in self.coordinates.items())}"


@dataclass(frozen=True)
class Job:
    """The ranks of one run.

    Attributes:
        directory: Where its files are.
        ranks: Those with a profile that can be used, by number; each number is there once.
        run_id: What the launcher calls the run; empty: not known.
        launcher: What started the ranks: `torchrun`, `mpi`, `slurm` and so on; empty: not known.
        world: How many ranks the job had, as they say; None: not known.
        others: Profiles of processes that belong to no rank.
        problems: What is missing or does not fit, a line each.
    """

    directory: Path
    ranks: tuple[Rank, ...]
    run_id: str = ""
    launcher: str = ""
    world: int | None = None
    others: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()

    @cached_property
    def hosts(self) -> list[str]:
        """Names of the machines, in the order of their ranks."""
        return list(dict.fromkeys(rank.host for rank in self.ranks if rank.host))


def named_ranks(numbers: Sequence[int]) -> str:
    """`rank 3`, or `ranks 0, 2-3, 5-6 and 4 more`, of ascending numbers."""
    return f"{'ranks' if len(numbers) > 1 else 'rank'} {ranges_text(numbers)}"


def ranges_text(numbers: Sequence[int]) -> str:
    """Ascending numbers with runs of them drawn together: `0-3, 7`; at most a few."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    told = [f"{first}-{last}" if last > first else str(first) for first, last in runs[:_N_NAMED]]
    return ", ".join(told) + (f" and {len(runs) - _N_NAMED} more" if len(runs) > _N_NAMED else "")


def _facts_of(run: Run) -> dict[str, Any]:
    gpus = [str(device["uuid"]) for device in run.devices if device.get("uuid")]
    return {
        "rank": run.rank,
        "world": run.world,
        "host": run.host,
        "pid": run.pid,
        "bragg": run.bragg,
        "program": program_of(run.command),
        **({"gpus": gpus} if gpus else {}),
    }
