"""The chain of work and transfers that sets the length of a job, from its last collective back to the first.

Each collective began its transfer when its last rank came, so the chain leads through that rank: its work since the
collective before, then that one's transfer, and so on. All times are differences on one rank's clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from bragg.analyze.ranks.aligned import Group
from bragg.model.table import FloatArray, Int64Array

_LEAST_SHARE = 0.001
_LEAST_NS = 1.0  # so that what comes before a collective of no length is another one


@dataclass(frozen=True)
class WhatIf:
    """What the path would lose if one thing were as usual.

    Attributes:
        rank: Index of the rank that would come no later than the next to last one; None: it is about an operation.
        operation: Of the collectives that would take no longer than the median one of their kind; empty: of a rank.
        saved_ns: At most so much; another chain may then be the longest.
    """

    rank: int | None
    operation: str
    saved_ns: float


@dataclass(frozen=True, eq=False)
class CriticalPath:
    """The longest chain of a job.

    Attributes:
        wall_ns: Its length.
        work_ns: The part of it that is work of each rank: [n_ranks].
        transfer_ns: The part that is transfers, after all ranks had come.
        slack_ns: How much later each rank could have come to its median collective and hold up nobody: [n_ranks]; NaN:
            it was in none.
        what_if: What would shorten it most, the most first.
    """

    wall_ns: float
    work_ns: FloatArray
    transfer_ns: float
    slack_ns: FloatArray
    what_if: list[WhatIf]


def critical_path(n_ranks: int, groups: Sequence[Group]) -> CriticalPath | None:
    """The longest chain through the collectives of a job; None: it has none.

    Args:
        n_ranks: Number of ranks.
        groups: Their process groups.
    """
    if not groups:
        return None
    timeline = cache(lambda rank: _Timeline(rank, groups))  # of few ranks: the path leads through those that are late
    first = timeline(min(int(group.members[0]) for group in groups))
    work, saved = np.zeros(n_ranks), np.zeros(n_ranks)
    ahead: dict[tuple[int, int], dict[bytes, float]] = defaultdict(lambda: defaultdict(float))
    slower: dict[str, float] = {}
    usual = [_usual_transfer(group) for group in groups]
    transfer_ns = 0.0
    place: tuple[int, int] | None = first.last
    seen: set[tuple[int, int]] = set()
    while place is not None and place not in seen:  # recordings that disagree may lead in a circle
        seen.add(place)
        number, column = place
        group = groups[number]
        last = int(group.last[column])
        rank = int(group.members[last if last >= 0 else _only_member(group, column)])
        took = max(_LEAST_NS, float(group.transfer_ns[column]))
        transfer_ns += took
        over = took - usual[number][column]
        if over > 0:
            slower[group.operation[column]] = slower.get(group.operation[column], 0.0) + over
        begin_ns = timeline(rank).end_ns(place) - took
        place, before_ns = timeline(rank).before(begin_ns)
        if place is not None:
            work[rank] += begin_ns - before_ns
            ahead[rank, int(group.step[column])][group.members.tobytes()] += _ahead_of_next(group, column)
    for (rank, _), of_members in ahead.items():  # Members of several groups are ahead of it at the same time.
        saved[rank] += max(of_members.values())
    wall_ns = float(work.sum()) + transfer_ns
    ideas = [WhatIf(rank, "", float(saved[rank])) for rank in np.flatnonzero(saved).tolist()]
    ideas += [WhatIf(None, operation, more) for operation, more in slower.items()]
    ideas = [each for each in ideas if each.saved_ns > _LEAST_SHARE * wall_ns]
    ideas.sort(key=lambda each: -each.saved_ns)
    return CriticalPath(wall_ns, work, transfer_ns, _slack(n_ranks, groups), ideas)


class _Timeline:
    """The collectives of one rank in the order of their ends, after `epoch_ns`."""

    def __init__(self, rank: int, groups: Sequence[Group]) -> None:
        self.epoch_ns = min((group.epoch_ns for group in groups), default=0)
        ends, numbers, columns = [np.empty(0)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for number, group in enumerate(groups):
            if (row := group.row_of(rank)) is None:
                continue
            own_ns = group.times([row]).end_ns[0]
            known = np.flatnonzero(~np.isnan(own_ns))
            ends.append(own_ns[known] + (group.epoch_ns - self.epoch_ns))
            numbers.append(np.full(len(known), number))
            columns.append(known)
        joined = np.concatenate(ends)
        by_end = np.argsort(joined, kind="stable")
        self.ends_ns: FloatArray = joined[by_end]
        self._numbers: Int64Array = np.concatenate(numbers)[by_end]
        self._columns: Int64Array = np.concatenate(columns)[by_end]

    @property
    def last(self) -> tuple[int, int]:
        """The collective that ends last: number of the group, column."""
        return int(self._numbers[-1]), int(self._columns[-1])

    def end_ns(self, place: tuple[int, int]) -> float:
        """When a collective ended."""
        number, column = place
        return float(self.ends_ns[(self._numbers == number) & (self._columns == column)][0])

    def before(self, time_ns: float) -> tuple[tuple[int, int] | None, float]:
        """The last one that has ended by a time, and when; None: there is none."""
        at = int(np.searchsorted(self.ends_ns, time_ns, side="right")) - 1
        if at < 0:
            return None, time_ns
        return (int(self._numbers[at]), int(self._columns[at])), float(self.ends_ns[at])


def _only_member(group: Group, column: int) -> int:
    return next(row for row in range(len(group.members)) if (group.table(row)[0] == column).any())


def _ahead_of_next(group: Group, column: int) -> float:
    """By how much the last rank came after the next to last one, as far as the others had nothing else to do."""
    return min(float(group.second_ns[column] - group.transfer_ns[column]), float(group.cost_ns[column]))


def _usual_transfer(group: Group) -> FloatArray:
    """The median transfer of collectives of equal operation and size: [n_collectives]."""
    usual = np.full(len(group.operation), np.nan)
    kinds = list(zip(group.operation, group.size_bytes.tolist(), strict=True))
    _, kind = np.unique(np.array([f"{operation} {size}" for operation, size in kinds]), return_inverse=True)
    for each in range(int(kind.max(initial=-1)) + 1):
        of_kind = kind == each
        usual[of_kind] = np.median(group.transfer_ns[of_kind])
    return usual


def _slack(n_ranks: int, groups: Sequence[Group]) -> FloatArray:
    """The median wait of each rank; 0: it comes last more often than not."""
    slack = np.full(n_ranks, np.nan)
    for rank in range(n_ranks):
        waits = [
            table.duration_ns - group.transfer_ns[at]
            for group in groups
            if (row := group.row_of(rank)) is not None
            for at, table in (group.table(row),)
        ]
        if waits:
            slack[rank] = np.median(np.concatenate(waits))
    return slack
