"""The profiles of a run whose processes are ranks, as the directory of a job."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from bragg.errors import BadFile
from bragg.formats.job.directory import INDEX, is_recorded_job, rank_file_name, read_job, write_job
from bragg.model import FrameKind, Profile
from bragg.model.ranks.job import Job, Rank
from bragg.record.output import Producer, expand, give_free_name
from bragg.views.text.units import bytes_text, count_text

if TYPE_CHECKING:
    from bragg.record import RecordConfig


Item = tuple[Path, Profile]
_SUFFIX = ".job"
# Kinds of what a program did itself, not only where it was sampled.
_DEEDS = (FrameKind.SCOPE, FrameKind.OPERATOR, FrameKind.KERNEL)
_RANK = re.compile(r"rank(\d+)")
_NUMBER_LEFT_TO_USER = re.compile(r"%[prh]")


@dataclass(frozen=True, eq=False)
class RecordedJob:
    """A job that was written.

    Attributes:
        directory: Where.
        profiles: Path and content of each, as it was before.
        notes: What does not fit.
    """

    directory: Path
    profiles: list[Item]
    notes: list[str]


def as_job(profiles: Sequence[Item], config: RecordConfig, stem: str) -> RecordedJob | None:
    """Move the profiles of a run into the directory of its job.

    Profiles of launchers that did nothing themselves are removed.

    Args:
        profiles: Path and content of each.
        config: How the run was recorded.
        stem: Short name of what was started, which names the job where the ranks do not tell their program.

    Returns:
        None: no process was a rank, or the user names each profile (`%r`, `%p`, `%h`).

    Raises:
        BadFile: The directory cannot be written.
    """
    if config.rotate_s is not None or _NUMBER_LEFT_TO_USER.search(config.output.replace("%%", "")):
        return None
    sorted_out = _SortedOut(profiles)
    if not sorted_out.mains:
        return None
    try:
        directory, notes = _directory(config, sorted_out.mains, stem)
        recorded = sorted_out.moved(directory, force=config.force)
    except OSError as error:
        raise BadFile(f"cannot write the job: {error}", hint="Choose another place with -o") from error
    return replace(recorded, notes=[*notes, *recorded.notes])


def job_line(directory: Path, written: Sequence[Path], shown: Profile | None = None, *, verb: str = "view") -> str:
    """What was written, of which rank the lines above it are, and what to do next."""
    n_ranks = len({match[1] for path in written if (match := _RANK.match(path.name))})
    n_others = len(written) - n_ranks
    size = bytes_text(sum(path.stat().st_size for path in written))
    others = f" and {count_text(n_others, 'other process', 'other processes')}" if n_others else ""
    above = f"; above: rank {shown.run.rank}" if shown and shown.run.rank is not None else ""
    what = f"{count_text(n_ranks, 'rank')}{others}, {size}{above}"
    return f"Wrote {directory}/ ({what}). Next: bragg {verb} {quote(str(directory))}"


class _SortedOut:
    """Which profile is of a rank itself, of a process that a rank started, of a launcher, or of none of them."""

    def __init__(self, profiles: Sequence[Item]) -> None:
        self._profiles = profiles
        of_rank: dict[tuple[int, int], list[tuple[Item, Rank]]] = defaultdict(list)
        self._rankless: list[Item] = []
        for item in profiles:
            rank = Rank.of(item[1].run, item[0])
            if rank is None:
                self._rankless.append(item)
            else:
                of_rank[rank.rank, rank.restarts].append((item, rank))
        self.mains: list[tuple[Item, Rank]] = []
        self._rivals: list[tuple[Item, Rank]] = []
        self._helpers: list[tuple[Item, Rank]] = []
        for group in of_rank.values():
            self._divide(group)

    def _divide(self, group: list[tuple[Item, Rank]]) -> None:
        """The first process of a rank is the rank; what its launcher has started, too, claims to be it."""
        pids = {rank.pid for _, rank in group}

        def order(member: tuple[Item, Rank]) -> tuple[bool, int]:
            run = member[0][1].run
            return run.parent_pid in pids, run.started_ns or 0

        main, *others = sorted(group, key=order)
        self.mains.append(main)
        parent = main[0][1].run.parent_pid
        for item, rank in others:
            is_rival = parent is not None and item[1].run.parent_pid == parent
            (self._rivals if is_rival else self._helpers).append((item, rank))

    def moved(self, directory: Path, *, force: bool) -> RecordedJob:
        """Move everything, and write the index."""
        directory.mkdir(parents=True, exist_ok=True)
        place: dict[Path, Path] = {}

        def move(path: Path, name: str) -> Path:
            # At no moment is there a part of a file under its name: other recorders may read the directory meanwhile.
            wanted = directory / name
            is_replaced = force and wanted not in place.values()
            place[path] = path.replace(wanted) if is_replaced else give_free_name(path, wanted)
            return place[path]

        helpers: dict[tuple[int, int], list[Path]] = defaultdict(list)
        for (path, profile), rank in self._helpers:
            stem = rank_file_name(rank.rank, rank.restarts).removesuffix(".bragg")
            helpers[rank.rank, rank.restarts].append(move(path, f"{stem}-p{profile.run.pid}.bragg"))
        ranks = []
        for (path, _), rank in [*self.mains, *self._rivals]:
            new = move(path, rank_file_name(rank.rank, rank.restarts))
            ranks.append(replace(rank, path=new, helpers=tuple(helpers[rank.rank, rank.restarts])))
        others = []
        for path, profile in self._rankless:
            if self._is_idle_launcher(profile):
                path.unlink()
            else:
                others.append(move(path, path.name))
        write_job(directory, ranks, others)
        kept = [(place[path], profile) for path, profile in self._profiles if path in place]
        numbers = sorted({rank.rank for _, rank in self._rivals})
        notes = [f"several processes say that they are rank {number}; none of them is compared" for number in numbers]
        return RecordedJob(directory, kept, notes)

    def _is_idle_launcher(self, profile: Profile) -> bool:
        """Whether a process started ranks, and did nothing but that."""
        above = {item[1].run.parent_pid for item, _ in [*self.mains, *self._rivals]}
        parents = {item.run.pid: item.run.parent_pid for _, item in self._rankless}
        while more := {parents[pid] for pid in above if pid in parents} - above:
            above |= more
        return profile.run.pid in above and not any(
            kind in _DEEDS for kind in profile.tree.frames.kind[profile.tree.frame].tolist()
        )


def _directory(config: RecordConfig, mains: Sequence[tuple[Item, Rank]], stem: str) -> tuple[Path, list[str]]:
    """The directory that was named, or one of the program's name; numbered, with a note, if these ranks are in it."""
    ranks = [rank for _, rank in mains]
    wanted = _wanted(config.output, ranks[0].program or stem)
    number = 1
    candidate = wanted
    notes = []
    while (job := _job_in(candidate)) is not None and not _takes(job, ranks):
        if config.force:
            _clear(candidate)
            break
        if job.run_id and job.run_id == ranks[0].run_id:
            notes.append(f"{candidate} has such a rank of this run already; launchers may have given one number twice")
        number += 1
        candidate = wanted.with_name(f"{wanted.stem}-{number}{wanted.suffix}")
    return candidate, notes


def _wanted(pattern: str, program: str) -> Path:
    is_directory = pattern.endswith("/") or Path(pattern).is_dir()
    if is_directory and Path(pattern).resolve() != Path.cwd():
        return Path(expand(pattern, Producer("", 0, None, ""))).parent
    stem = program.rpartition(".")[0] if program.endswith((".py", ".pyc", ".pyz")) else program.rpartition(".")[2]
    pattern = "%s" if is_directory else pattern.removesuffix(_SUFFIX)
    return expand(pattern, Producer(stem, 0, None, "")).with_suffix(_SUFFIX)


def _job_in(directory: Path) -> Job | None:
    """The job of a directory; one without ranks if it cannot be read; None: there is none."""
    if not is_recorded_job(directory):
        return None
    try:
        return read_job(directory)
    except BadFile:
        return Job(directory, ())


def _takes(job: Job, ranks: Sequence[Rank]) -> bool:
    """Whether ranks can be added to a job: they are others of the same run, as those of another node are."""
    there = {(rank.rank, rank.restarts) for rank in job.ranks}
    is_same_run = job.run_id == ranks[0].run_id and job.world == ranks[0].world
    return bool(job.ranks) and is_same_run and there.isdisjoint((rank.rank, rank.restarts) for rank in ranks)


def _clear(directory: Path) -> None:
    """Remove the profiles of another job."""
    for path in [directory / INDEX, *directory.glob("rank[0-9]*.bragg")]:
        path.unlink(missing_ok=True)
