"""Call paths that take longer on one rank than on the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bragg.analyze.ranks.path_sums import PathSums
from bragg.model.ranks.summary import PathTable, RankSummary
from bragg.model.table import BoolArray, FloatArray, Int64Array

_LEAST = 0.1  # max / mean - 1
_SHARE = 0.01  # of the time of a rank, that the slowest has above the mean
_SPREADS = 6.0  # median deviations of the others


@dataclass(frozen=True, eq=False)
class PathValues:
    """Times by rank and call path, of some ranks.

    Attributes:
        ranks: Indices of these ranks, ascending: [n_ranks].
        path: Ids, ascending: [n_paths].
        kernel: Number of the last frame of each, the same for the same kernel: [n_paths].
        is_communication: [n_paths].
        gpu_ns: [n_ranks, n_paths]; 0 where a rank did not run it.
        host_ns: [n_ranks, n_paths]; 0 where a rank did not run it.
        gpu_count: [n_ranks, n_paths]; 0 where a rank did not run it.
        summaries: All ranks of the job.
    """

    ranks: Int64Array
    path: Int64Array
    kernel: Int64Array
    is_communication: BoolArray
    gpu_ns: FloatArray
    host_ns: FloatArray
    gpu_count: FloatArray
    summaries: Sequence[RankSummary]
    _labels: dict[int, list[str]] = field(default_factory=dict)

    def of(self, table: FloatArray, index: int) -> FloatArray:
        """The row of a rank: [n_paths]."""
        row: FloatArray = table[np.searchsorted(self.ranks, index)]
        return row

    def median(self, table: FloatArray, indices: Int64Array) -> FloatArray:
        """That of those of several ranks that are here: [n_paths]."""
        middle: FloatArray = np.median(table[np.isin(self.ranks, indices)], axis=0)
        return middle

    def label(self, column: int, rank: int) -> str:
        """The text of a path, as a rank that ran it has it."""
        rows = np.flatnonzero(self.summaries[rank].paths().path == self.path[column])
        if not len(rows):
            return ""
        if rank not in self._labels:
            self._labels[rank] = self.summaries[rank].labels()
        return self._labels[rank][int(rows[0])]


@dataclass(frozen=True)
class Imbalance:
    """A call path that is not the same work on all ranks.

    Attributes:
        path: Its text.
        rank: Index of the rank on which it takes longest.
        ratio: Largest over mean, less one.
        mean_ns: Of all ranks.
        most_ns: Of that rank.
        is_host: Whether it is time of the host.
    """

    path: str
    rank: int
    ratio: float
    mean_ns: float
    most_ns: float
    is_host: bool = False


def path_values(summaries: Sequence[RankSummary], indices: Sequence[int]) -> PathValues:
    """The times of some ranks beside each other.

    Args:
        summaries: All ranks.
        indices: Of the ranks.
    """
    ranks = np.unique(np.array(indices, np.int64))
    tables = [summaries[index].paths() for index in ranks.tolist()]
    joined = PathTable.concatenate(tables)
    path, column = np.unique(joined.path, return_inverse=True)
    row = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    at = row * len(path) + column.reshape(-1)

    def matrix(values: Int64Array) -> FloatArray:
        sums: FloatArray = np.bincount(at, values, len(tables) * len(path)).astype(np.float64)
        return sums.reshape(len(tables), len(path))

    is_communication = np.zeros(len(path), np.bool_)
    is_communication[column.reshape(-1)[joined.is_communication > 0]] = True
    kernel = np.zeros(len(path), np.int64)
    kernel[column.reshape(-1)] = np.unique(joined.kernel, return_inverse=True)[1].reshape(-1)
    times = matrix(joined.gpu_ns), matrix(joined.host_ns), matrix(joined.gpu_count)
    return PathValues(ranks, path, kernel, is_communication, *times, summaries)


def imbalances(values: PathValues, sums: PathSums, limit: int) -> list[Imbalance]:
    """The paths with most time above the mean, beyond what differs between ranks by chance; without collectives.

    Their time is that of waiting for the others.

    Args:
        values: Of ranks that say what is usual.
        sums: Of all ranks.
        limit: How many at most.
    """
    n_ranks = len(sums.host_waits_ns)
    if n_ranks < 2 or not len(values.path):
        return []
    place = np.searchsorted(sums.path, values.path)
    most, most_rank = sums.most_ns[place], sums.most_rank[place]
    mean = sums.gpu_ns[place] / n_ranks
    numbers = np.array([each.rank for each in values.summaries], np.int64)[values.ranks]
    rest = np.where(numbers[:, None] == most_rank, np.nan, values.gpu_ns)
    middle = np.nanmedian(rest, axis=0)
    spread = np.nanmedian(np.abs(rest - middle), axis=0)
    total = float(sums.gpu_ns.sum()) / n_ranks
    chosen = (most - mean > _SHARE * total) & (most > (1 + _LEAST) * mean) & (most - middle > _SPREADS * spread)
    columns = np.flatnonzero(chosen & ~values.is_communication)
    columns = columns[np.argsort(mean[columns] - most[columns], kind="stable")][:limit]
    index_of = {each.rank: index for index, each in enumerate(values.summaries)}
    found = []
    for column in columns.tolist():
        rank, ratio = index_of[int(most_rank[column])], float(most[column] / mean[column] - 1)
        found.append(Imbalance(values.label(column, rank), rank, ratio, float(mean[column]), float(most[column])))
    return found
