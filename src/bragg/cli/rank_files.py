"""The summaries of a job's ranks, from its directory or from files."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bragg.analyze.ranks.path_sums import PathSums
from bragg.errors import BraggError, UsageError
from bragg.formats.job.directory import is_job, read_job
from bragg.formats.job.foreign import number_in_name
from bragg.formats.job.kept import KeptCollectives
from bragg.formats.job.nccl_inspector import read_inspector
from bragg.formats.job.summaries import read_summary
from bragg.model.ranks.job import Rank
from bragg.model.ranks.summary import CollectiveTable, RankSummary

if TYPE_CHECKING:
    from bragg.analyze.ranks.answer import RanksAnswer
    from bragg.analyze.report import Answered


_CONNECT_S = 10
_BATCHES_AT_ONCE = 8
_BATCHES_AHEAD = 16  # of 5 MB: this process takes 0.3 s for one, a worker 0.5 s
_RANKS_A_BATCH = 128  # 12 MB of call paths, of which the sums stay
_IN_MEMORY_BYTES = 64 << 20  # of collectives; others are in a file, and read again each time


@dataclass(frozen=True, eq=False)
class RankBatch:
    """Some ranks of a job; batches add up in any order.

    Attributes:
        summaries: Of the ranks.
        sums: Of their call paths.
        problems: What could not be used, a line each.
    """

    summaries: list[RankSummary]
    sums: PathSums
    problems: list[str]


@contextmanager
def executor_named(name: str | None) -> Iterator[Executor | None]:
    """What reads batches of ranks at once.

    Args:
        name: `dask:ADDRESS` of a scheduler whose workers see the files; None: this process reads one after the other.

    Raises:
        UsageError: There is no such executor, or it cannot be reached.
    """
    if name is None:
        yield None
        return
    kind, _, address = name.partition(":")
    if kind != "dask" or not address:
        raise UsageError(
            f"there is no executor {name!r}", hint="Known: dask:ADDRESS, for example dask:tcp://node1:8786"
        )
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError("distributed is not installed", hint="pip install 'bragg[dask]'") from error
    try:
        client = Client(address, timeout=_CONNECT_S)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no scheduler of dask answers at {address}: {error}", hint="Start one with: dask scheduler"
        ) from error
    with client:
        yield client.get_executor()


def read_ranks(paths: Sequence[Path], executor: Executor | None = None) -> RankBatch:
    """All ranks that are named; a number that several profiles claim is left out.

    Args:
        paths: The directory of a job, or files.
        executor: Reads batches; None: this process.

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
    if len(ranks) == 1 and (gpus := _gpus_of(ranks[0])):
        problems.append("one process: each of its GPUs is compared as a rank")
        return RankBatch(gpus, PathSums.joined([PathSums.of(each.rank, each.paths()) for each in gpus]), problems)
    batches = [ranks[begin : begin + _RANKS_A_BATCH] for begin in range(0, len(ranks), _RANKS_A_BATCH)]
    return _joined(_read_ahead(batches, executor) if executor else map(read_batch, batches), problems)


def _gpus_of(rank: Rank | Path) -> list[RankSummary]:
    """The GPUs of the only process of a job, as of JAX; empty: it has one, or the file is of several processes."""
    from bragg import formats
    from bragg.analyze.ranks.summarize import summarize
    from bragg.formats.timelines.processes import gpus_within, ranks_within

    path = rank.path if isinstance(rank, Rank) else rank
    try:
        if read_inspector(path) is not None:
            return []
        profile = formats.load(path)
    except BraggError:  # `read_batch` says it.
        return []
    return [] if ranks_within(profile) else [summarize(each) for each in gpus_within(profile)]


def read_batch(ranks: Sequence[Rank | Path]) -> RankBatch:
    """Some ranks of a job, as small as comparing them allows.

    Args:
        ranks: Rows of a job, or files.
    """
    found: list[RankSummary] = []
    sums: list[PathSums] = []
    problems: list[str] = []
    for rank in ranks:
        try:
            if isinstance(rank, Rank):
                (read,) = _read(rank.path, rank.rank)
                summaries = [replace(read, rank=rank.rank, host=rank.host or read.host, role=rank.role)]
            else:
                summaries = _read(rank, None)
            sums += [PathSums.of(each.rank, each.paths()) for each in summaries]
            found += [replace(each, collectives=partial(_same, each.collectives().copied())) for each in summaries]
        except BraggError as error:
            problems.append(error.message)
    return RankBatch(found, PathSums.joined(sums), problems)


def _read_ahead(batches: Sequence[list[Rank | Path]], executor: Executor) -> Iterator[RankBatch]:
    """Batches in their order; those that nobody has taken yet fill the memory of workers, so they are few."""
    waiting: deque[Future[RankBatch]] = deque()
    for batch in batches:
        waiting.append(executor.submit(read_batch, batch))
        if len(waiting) > _BATCHES_AHEAD:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _joined(batches: Iterable[RankBatch], problems: list[str]) -> RankBatch:
    found: list[RankSummary] = []
    sums = PathSums.joined([])
    waiting: list[PathSums] = []
    kept: KeptCollectives | None = None
    room_bytes = _IN_MEMORY_BYTES
    for batch in batches:
        for rank in batch.summaries:
            table = rank.collectives()
            room_bytes -= sum(getattr(table, name).nbytes for name in table.columns())
            if room_bytes < 0:
                kept = kept or KeptCollectives()
                rank = replace(rank, collectives=kept.keep(table))
            found.append(rank)
        problems += batch.problems
        waiting.append(batch.sums)
        if len(waiting) == _BATCHES_AT_ONCE:
            sums, waiting = PathSums.joined([sums, *waiting]), []
    single = list(_one_each(found, problems))
    if len(single) == len(found):
        return RankBatch(single, PathSums.joined([sums, *waiting]), problems)
    return RankBatch(single, PathSums.joined([PathSums.of(rank.rank, rank.paths()) for rank in single]), problems)


def with_rank_findings(answer: Answered, path: Path) -> Answered:
    """The answer for one rank with what comparing it with the others of its job found; of other files as it is."""
    compared = compared_ranks(path)
    if compared is None:
        return answer
    from bragg.analyze.engine import ranked
    from bragg.analyze.ranks.findings import findings_of

    found = findings_of(compared)
    return replace(answer, analysis=replace(answer.analysis, findings=ranked([*found, *answer.analysis.findings])))


def compared_ranks(path: Path) -> RanksAnswer | None:
    """The ranks of a job compared; None: it is another file, or has one rank.

    Args:
        path: The directory of a job, or anything else.
    """
    if not is_job(path):
        return None
    from bragg.analyze.ranks.answer import compare_ranks

    read = read_ranks([path])
    return compare_ranks(read.summaries, read.problems, read.sums) if len(read.summaries) > 1 else None


def late_rank(compared: RanksAnswer | None) -> str | None:
    """Number of the rank that the others wait for most; None: there is none."""
    if compared is None or not compared.stragglers:
        return None
    return str(compared.ranks[compared.stragglers[0][0].index].rank)


def _read(path: Path, number: int | None) -> list[RankSummary]:
    """The summary of a file, or one made of the whole file; of a timeline of several processes one of each."""
    summary = read_summary(path) or read_inspector(path)
    if summary is not None:
        return [summary]
    from bragg import formats
    from bragg.analyze.ranks.summarize import summarize
    from bragg.formats.timelines.processes import ranks_within

    profile = formats.load(path)
    if number is None and profile.run.rank is None:
        if within := ranks_within(profile):
            return [summarize(each) for each in within]
        number = number_in_name(path)
        if number is None:
            raise UsageError(
                f"{path} does not say which rank it is", hint="Put its number into its name, such as report.3.sqlite"
            )
    return [summarize(profile, number)]


def _same(table: CollectiveTable) -> CollectiveTable:
    return table


def _one_each(found: Sequence[RankSummary], problems: list[str]) -> Iterator[RankSummary]:
    """Ranks that one profile alone claims to be."""
    count = Counter(summary.rank for summary in found)
    for number in sorted(number for number, n_profiles in count.items() if n_profiles > 1):
        problems.append(f"{count[number]} profiles say that they are of rank {number}: none of them is used")
    return (summary for summary in found if count[summary.rank] == 1)
