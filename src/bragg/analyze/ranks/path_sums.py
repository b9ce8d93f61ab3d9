"""Times of call paths summed over ranks: partial sums of batches of ranks add up in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bragg.model.ranks.summary import PathTable
from bragg.model.table import BoolArray, FloatArray, Int64Array


@dataclass(frozen=True, eq=False)
class PathSums:
    """What is known of each call path over some ranks.

    Attributes:
        path: Ids, ascending: [n_paths].
        gpu_ns: Time of the GPU, of all ranks together: [n_paths].
        most_ns: Of the rank that has most of it: [n_paths].
        most_rank: That rank's number: [n_paths].
        is_communication: [n_paths].
        host_waits_ns: How long the host of each rank was in collectives, by its number.
    """

    path: Int64Array
    gpu_ns: FloatArray
    most_ns: FloatArray
    most_rank: Int64Array
    is_communication: BoolArray
    host_waits_ns: dict[int, int]

    @classmethod
    def of(cls, rank: int, table: PathTable) -> PathSums:
        """Those of one rank."""
        order = np.argsort(table.path, kind="stable")
        gpu_ns = table.gpu_ns[order].astype(np.float64)
        is_communication = table.is_communication > 0
        waits = {rank: int(table.host_ns[is_communication].sum())}
        number = np.full(len(order), rank, np.int64)
        found = cls(table.path[order], gpu_ns, gpu_ns, number, is_communication[order], waits)
        is_single = (found.path[1:] != found.path[:-1]).all()
        return found if is_single else cls.joined([found])

    @classmethod
    def joined(cls, parts: Sequence[PathSums]) -> PathSums:
        """Those of several batches together."""
        joined = np.concatenate([part.path for part in parts]) if parts else np.empty(0, np.int64)
        path, at = np.unique(joined, return_inverse=True)
        at = at.reshape(-1)
        if not len(path):
            no = np.empty(0)
            return cls(path, no, no, path, np.empty(0, np.bool_), _waits(parts))
        most_ns = np.concatenate([part.most_ns for part in parts])
        number = np.concatenate([part.most_rank for part in parts])
        order = np.lexsort((number, -most_ns, at))  # of each path the rank with most first
        first = order[np.searchsorted(at[order], np.arange(len(path)))]
        is_communication = np.zeros(len(path), np.bool_)
        is_communication[at[np.concatenate([part.is_communication for part in parts])]] = True
        gpu_ns = np.bincount(at, np.concatenate([part.gpu_ns for part in parts]), len(path))
        return cls(path, gpu_ns.astype(np.float64), most_ns[first], number[first], is_communication, _waits(parts))


def _waits(parts: Sequence[PathSums]) -> dict[int, int]:
    return {rank: waited for part in parts for rank, waited in part.host_waits_ns.items()}
