"""Call paths that take longer on one rank than on the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bragg.model.rank_summary import RankSummary
from bragg.model.table import BoolArray, FloatArray, Int64Array

__all__ = ["Imbalance", "PathValues", "imbalances", "path_values"]

_LEAST = 0.1  # max / mean - 1
_SHARE = 0.01  # of the time of a rank, that the slowest has above the mean
_SPREADS = 6.0  # median deviations of the others


@dataclass(frozen=True, eq=False)
class PathValues:
    """Times by rank and call path.

    Attributes:
        path: Ids, ascending: [n_paths].
        kernel: Number of the last frame of each, the same for the same kernel: [n_paths].
        is_communication: [n_paths].
        gpu_ns: [n_ranks, n_paths]; 0 where a rank did not run it.
        host_ns: Likewise.
        gpu_count: Likewise.
    """

    path: Int64Array
    kernel: Int64Array
    is_communication: BoolArray
    gpu_ns: FloatArray
    host_ns: FloatArray
    gpu_count: FloatArray
    _ranks: Sequence[RankSummary]
    _labels: dict[int, list[str]] = field(default_factory=dict)

    def label(self, column: int, rank: int) -> str:
        """The text of a path, as a rank that ran it has it."""
        rows = np.flatnonzero(self._ranks[rank].paths.path == self.path[column])
        if not len(rows):
            return ""
        if rank not in self._labels:
            self._labels[rank] = self._ranks[rank].labels()
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


def path_values(ranks: Sequence[RankSummary]) -> PathValues:
    """The times of all ranks beside each other."""
    joined = np.concatenate([rank.paths.path for rank in ranks])
    path, column = np.unique(joined, return_inverse=True)
    row = np.repeat(np.arange(len(ranks)), [len(rank.paths) for rank in ranks])
    at = row * len(path) + column.reshape(-1)

    def table(name: str) -> FloatArray:
        values = np.concatenate([getattr(rank.paths, name) for rank in ranks])
        sums: FloatArray = np.bincount(at, values, len(ranks) * len(path)).astype(np.float64)
        return sums.reshape(len(ranks), len(path))

    is_communication = np.zeros(len(path), np.bool_)
    is_communication[column.reshape(-1)[np.concatenate([rank.paths.is_communication for rank in ranks]) > 0]] = True
    kernel = np.zeros(len(path), np.int64)
    kernel[column.reshape(-1)] = np.unique(np.concatenate([rank.paths.kernel for rank in ranks]), return_inverse=True)[
        1
    ].reshape(-1)
    return PathValues(path, kernel, is_communication, table("gpu_ns"), table("host_ns"), table("gpu_count"), ranks)


def imbalances(values: PathValues, limit: int) -> list[Imbalance]:
    """The paths with most time above the mean, beyond what differs between ranks by chance; without collectives.

    Their time is that of waiting for the others.
    """
    table = values.gpu_ns
    if len(table) < 2 or not table.shape[1]:
        return []
    order = np.sort(table, axis=0)
    most, mean, rest = order[-1], table.mean(axis=0), order[:-1]
    middle = np.median(rest, axis=0)
    spread = np.median(np.abs(rest - middle), axis=0)
    total = float(table.sum(axis=1).mean())
    chosen = (most - mean > _SHARE * total) & (most > (1 + _LEAST) * mean) & (most - middle > _SPREADS * spread)
    columns = np.flatnonzero(chosen & ~values.is_communication)
    columns = columns[np.argsort(mean[columns] - most[columns], kind="stable")][:limit]
    rank = np.argmax(table, axis=0)
    return [
        Imbalance(
            values.label(column, int(rank[column])),
            int(rank[column]),
            float(most[column] / mean[column] - 1),
            float(mean[column]),
            float(most[column]),
        )
        for column in columns.tolist()
    ]
