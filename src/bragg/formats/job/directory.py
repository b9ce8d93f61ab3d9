"""The directory of a job: a profile for each rank, and `job.json`, which says whose they are.

    job.json                       format, version, run_id, launcher, world, hosts; ranks: a row each; others: files
    rank00017.bragg                the profile of a rank; rank00017.restart1.bragg: after a restart
    rank00017-p4711.bragg          a process that it started

The file is an index, not the truth: a profile that it does not list is asked itself, so a job can be read while it is
being written, and nodes that write at once need not wait for each other. A directory with files of another profiler is
read, too.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

from bragg.errors import BadFile
from bragg.formats.bragg import read_meta
from bragg.formats.captured.writer import is_being_written
from bragg.formats.files import new_file
from bragg.formats.job.foreign import foreign_ranks, has_foreign_ranks
from bragg.model.facts import Facts
from bragg.model.meta.run import Run
from bragg.model.ranks.job import Job, Rank, named_ranks, ranges_text

INDEX = "job.json"
_VERSION = 1
_PROFILES = "rank[0-9]*.bragg"
_HELPER = re.compile(r"rank\d+(\.restart\d+)?-p\d+")
_RANK = re.compile(r"rank(\d{1,9})(?:\.restart\d+)?")
_LOCK = ".job.lock"
# Each node, or each rank, adds its rows in some milliseconds; who has no turn leaves them to readers.
_LOCK_WAIT_S = 2.0
_LOCK_POLL_S = 0.01
_LOCK_STALE_S = 10.0
_N_NAMED = 3
_MOST_RANKS = 1 << 20  # that are looked for; a file may claim any number


def rank_file_name(rank: int, restarts: int = 0) -> str:
    """Name of a rank's profile."""
    return f"rank{rank:05d}{f'.restart{restarts}' if restarts else ''}.bragg"


def is_job(path: Path) -> bool:
    """Whether a path is the directory of a job, which bragg or another profiler recorded."""
    return is_recorded_job(path) or (path.is_dir() and has_foreign_ranks(path))


def is_recorded_job(path: Path) -> bool:
    """Whether a path is the directory of a job that bragg recorded."""
    return path.is_dir() and ((path / INDEX).is_file() or next(path.glob(_PROFILES), None) is not None)


def read_job(directory: Path) -> Job:
    """The ranks of a job: those of `job.json`, and of other profiles in the directory.

    Profiles that are damaged or missing, of one rank twice, or of another run are left out; `Job.problems` says so.

    Raises:
        BadFile: There is no such directory, or no profile of a rank in it that can be used.
    """
    if not directory.is_dir():
        raise BadFile(f"{directory} is not the directory of a job", hint="Give the directory that bragg run wrote")
    found = _Found(directory)
    ranks = found.one_each(found.of_one_run())
    if not ranks:
        problem = found.problems[0] if found.problems else "there is no profile of a rank in it"
        raise BadFile(f"{directory} is no job: {problem}", hint="Record one with: bragg run -- torchrun train.py")
    worlds = [rank.world for rank in ranks if rank.world]
    world = max(worlds, default=None)
    problems = [
        *found.problems,
        *_missing(found.told | {rank.rank for rank in ranks}, world),
        *_mixed(ranks),
        *_unfinished(directory),
    ]
    helpers = {path for rank in ranks for path in rank.helpers}
    others = [path for path in found.others if path not in helpers]
    return Job(directory, tuple(ranks), ranks[0].run_id, ranks[0].launcher, world, tuple(others), tuple(problems))


def write_job(directory: Path, ranks: Sequence[Rank], others: Sequence[Path] = ()) -> None:
    """Add ranks and other profiles to `job.json`; those of other nodes that it lists stay.

    Raises:
        BadFile: It cannot be written.
    """
    with _locked(directory / _LOCK) as has_turn:
        if not has_turn:
            return
        index = _read_index(directory, [])
        new = [rank.to_json() for rank in ranks]
        files = {row["file"] for row in new}
        rows = [*(dict(row) for row in index.rows("ranks") if row.get("file") not in files), *new]
        rows.sort(key=lambda row: (Facts(row).count("rank"), Facts(row).count("restarts")))
        content = {
            "format": "bragg-job",
            "version": _VERSION,
            **_common(rows),
            "hosts": list(dict.fromkeys(Facts(row).text("host") for row in rows if row.get("host"))),
            "ranks": rows,
            "others": sorted({*index.texts("others"), *(path.name for path in others)}),
        }
        with new_file(directory / INDEX) as file:
            file.write(json.dumps(content, indent=1).encode())


class _Found:
    """The profiles of a directory, what is wrong with them, and of which ranks that is told."""

    def __init__(self, directory: Path) -> None:
        self.problems: list[str] = []
        self.told: set[int] = set()
        self.others: list[Path] = []
        self._ranks: list[Rank] = []
        index = _read_index(directory, self.problems)
        present = {path.name: path for path in sorted(directory.glob("*.bragg"))}
        listed = set(index.texts("others"))
        for row in index.rows("ranks"):
            name = Facts(row).text("file")
            listed |= {name, *Facts(row).texts("helpers")}
            rank = Rank.from_json(row, directory / name) if PurePath(name).name == name else None
            if rank is not None and name in present:
                self._ranks.append(rank)
            else:
                self.problems.append(f"{INDEX} lists {name or 'a profile without a name'}, which is not there")
                self.told |= {rank.rank} if rank is not None else set()
        self.others += [present[name] for name in index.texts("others") if name in present]
        for name in present.keys() - listed:
            self._ask(present[name])
        self._ranks += [] if index.rows("ranks") else foreign_ranks(directory)

    def _ask(self, path: Path) -> None:
        """Add a profile that is not listed."""
        try:
            rank = Rank.of(Run(read_meta(path)), path)
        except BadFile as error:
            self.problems.append(error.message)
            named = _RANK.fullmatch(path.stem)
            self.told |= {int(named[1])} if named else set()
            return
        if rank is None or _HELPER.fullmatch(path.stem):
            self.others.append(path)
        else:
            self._ranks.append(rank)

    def of_one_run(self) -> list[Rank]:
        """The ranks of the run that has most of them; those that name no run stay with it."""
        runs: dict[str, list[Rank]] = defaultdict(list)
        for rank in self._ranks:
            runs[rank.run_id].append(rank)
        nameless = runs.pop("", [])
        if len(runs) < 2:
            return self._ranks
        chosen = max(runs, key=lambda name: len(runs[name]))
        left_out = sum(len(ranks) for name, ranks in runs.items() if name != chosen)
        self.problems.append(f"profiles of {len(runs)} runs are here: {left_out} that are not of {chosen} are left out")
        return [*runs[chosen], *nameless]

    def one_each(self, ranks: list[Rank]) -> list[Rank]:
        """Of each rank the profile after its last restart; none where two claim to be that."""
        numbers: dict[int, list[Rank]] = defaultdict(list)
        for rank in ranks:
            numbers[rank.rank].append(rank)
        chosen = []
        for number, candidates in sorted(numbers.items()):
            latest = max(rank.restarts for rank in candidates)
            last = [rank for rank in candidates if rank.restarts == latest]
            if len(last) == 1:
                chosen.append(last[0])
            else:
                names = ", ".join(sorted(rank.path.name for rank in last))
                self.problems.append(f"{len(last)} profiles say that they are of rank {number}, none is used: {names}")
                self.told.add(number)
        n_restarted = sum(rank.restarts > 0 for rank in chosen)
        if n_restarted and n_restarted < len(chosen):
            self.problems.append(f"{n_restarted} of {len(chosen)} ranks were restarted: their times are of less work")
        return chosen


def _read_index(directory: Path, problems: list[str]) -> Facts:
    """`job.json`; empty where it is missing or cannot be used, which goes to `problems`."""
    try:
        index = Facts(json.loads((directory / INDEX).read_bytes()))
    except FileNotFoundError:
        return Facts(None)
    except (OSError, ValueError, RecursionError) as error:
        problems.append(f"{INDEX} cannot be read, profiles are asked themselves: {' '.join(str(error).split())}")
        return Facts(None)
    if index.count("version") > _VERSION:
        problems.append(f"{INDEX} is of a later version, profiles are asked themselves: update bragg")
        return Facts(None)
    return index


def _common(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Facts of the whole job, as its first rank that knows them says."""
    names = ("run_id", "launcher", "world")
    return {name: value for name in names if (value := next((row[name] for row in rows if row.get(name)), None))}


def _missing(known: set[int], world: int | None) -> Iterator[str]:
    absent = [number for number in range(min(world or 0, _MOST_RANKS)) if number not in known]
    if absent:
        yield f"{named_ranks(absent)} of {world} without a profile"


def _mixed(ranks: Sequence[Rank]) -> Iterator[str]:
    """What ranks do not agree on."""
    for what, name in (("versions of bragg", "bragg"), ("programs", "program"), ("numbers of ranks", "world")):
        groups: dict[str, list[int]] = defaultdict(list)
        for rank in ranks:
            if value := getattr(rank, name):
                groups[str(value)].append(rank.rank)
        if len(groups) > 1:
            told = [f"{value} ({ranges_text(numbers)})" for value, numbers in list(groups.items())[:_N_NAMED]]
            more = ", …" if len(groups) > _N_NAMED else ""
            yield f"the ranks have different {what}: {', '.join(told)}{more}"


def _unfinished(directory: Path) -> Iterator[str]:
    is_running = [is_being_written(capture) for capture in directory.glob(".bragg-*/*.part")]
    if running := sum(is_running):
        yield f"{running} {'process is' if running == 1 else 'processes are'} still running: not in these numbers"
    if left := len(is_running) - running:
        yield f"{left} {'process has' if left == 1 else 'processes have'} left a capture: bragg recover {directory}"


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Whether this process has its turn; while it has, no other one gets it."""
    deadline = time.monotonic() + _LOCK_WAIT_S
    has_turn = False
    while not has_turn and time.monotonic() < deadline:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
            has_turn = True
        except FileExistsError:
            _remove_stale(path)
            time.sleep(_LOCK_POLL_S)
        except OSError:  # Not a place to write to; the writing says why.
            break
    try:
        yield has_turn or not path.exists()
    finally:
        if has_turn:
            path.unlink(missing_ok=True)


def _remove_stale(lock: Path) -> None:
    """Remove the lock of a process that was killed."""
    try:
        if time.time() - lock.stat().st_mtime > _LOCK_STALE_S:
            lock.unlink()
    except OSError:  # Another one was faster.
        return
