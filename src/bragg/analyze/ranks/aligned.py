"""The same collectives of all ranks beside each other, by process group and sequence: no clock is needed.

Of thousands of ranks not all times fit in memory. What is known of each collective over all members (the shortest, who
came last, sums) adds up over blocks of members; the times of some members are read when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bragg.model.ranks.summary import CollectiveTable, RankSummary
from bragg.model.table import FloatArray, Int32Array, Int64Array

_MAX_PERIOD = 512
_SAME = 0.98
_NO_COLLECTIVE = -2  # of a rank, where others have a step or -1
_BLOCK_ROWS = 64
_USUAL = 64  # ranks; the median of so many is within a sixth of their spread


def usual_ones(indices: Sequence[int]) -> Sequence[int]:
    """All of a few ranks; of many so many as tell what is usual, evenly chosen."""
    return indices[:: len(indices) // _USUAL] if len(indices) > 4 * _USUAL else indices


@dataclass(frozen=True, eq=False)
class Times:
    """Collectives of some members; NaN where one has none: [n_chosen, n_collectives].

    Attributes:
        duration_ns: With the wait for the last one to arrive.
        exposed_ns: The part beside which nothing else ran; NaN: not known.
        end_ns: By the clock of the member's host, after `Group.epoch_ns`.
    """

    duration_ns: FloatArray
    exposed_ns: FloatArray
    end_ns: FloatArray


@dataclass(frozen=True, eq=False)
class Group:
    """A process group: a row for each member, a column for each collective.

    All of them end a collective together, so the last one to arrive has the shortest.

    Attributes:
        name: As the profiles call it.
        members: Indices of ranks, ascending: [n_members].
        operation: Of each collective: [n_collectives].
        size_bytes: [n_collectives]; -1: not known.
        step: [n_collectives].
        is_step_told: Whether a rank says of which step a collective is; otherwise their pattern does.
        transfer_ns: What the last one to arrive saw: [n_collectives].
        second_ns: What the last but one saw: [n_collectives]; infinite: there is none.
        last: The member that arrived last at each collective, [n_collectives]; -1: fewer than two were recorded.
        n_recorded: How many members each collective has: [n_collectives].
        n_of_member: How many collectives each member has: [n_members].
        epoch_ns: So that ends are exact.
        n_unequal: Collectives in which members disagree on the operation.
        sequence: The number of each collective, ascending: [n_collectives].
        ranks: All ranks of the job.
    """

    name: str
    members: Int64Array
    operation: list[str]
    size_bytes: Int64Array
    step: Int32Array
    is_step_told: bool
    transfer_ns: FloatArray
    second_ns: FloatArray
    last: NDArray[np.intp]
    n_recorded: Int64Array
    n_of_member: Int64Array
    epoch_ns: int
    n_unequal: int
    sequence: Int64Array
    ranks: Sequence[RankSummary]

    @property
    def shape(self) -> tuple[int, int]:
        """Members and collectives."""
        return len(self.members), len(self.sequence)

    @cached_property
    def last_of_steps(self) -> Int64Array:
        """The last collective of each step: [n_steps]."""
        return np.flatnonzero(np.append(self.step[1:] != self.step[:-1], True)).astype(np.int64)

    @cached_property
    def steps(self) -> Int64Array:
        """The steps, ascending: [n_steps]."""
        return self.step[self.last_of_steps].astype(np.int64)

    @cached_property
    def cost_ns(self) -> FloatArray:
        """What each collective cost the average one of the others because the last one was late: [n_collectives]."""
        cost = np.zeros(len(self.sequence))
        for _, times in self.blocks():
            cost += np.nansum(self.wait_ns(times), axis=0)
        return np.where(self.last >= 0, cost / np.maximum(self.n_recorded - 1, 1), 0.0)

    def wait_ns(self, times: Times) -> FloatArray:
        """How long members waited in vain, where nothing else ran on their GPU: [n_chosen, n_collectives]."""
        return np.fmin(times.duration_ns - self.transfer_ns, times.exposed_ns)

    def table(self, row: int) -> tuple[Int64Array, CollectiveTable]:
        """The column of each collective of a member, [n_collectives of it], and the collectives."""
        table = _in_group(self.name, self.ranks[int(self.members[row])])
        return np.searchsorted(self.sequence, table.sequence), table

    def times(self, rows: Sequence[int]) -> Times:
        """Those of some members."""
        found = [np.full((len(rows), len(self.sequence)), np.nan) for _ in range(3)]
        duration_ns, exposed_ns, end_ns = found
        for place, row in enumerate(rows):
            at, table = self.table(row)
            duration_ns[place, at] = table.duration_ns
            exposed_ns[place, at] = np.where(table.exposed_ns < 0, np.nan, table.exposed_ns)
            end_ns[place, at] = (table.start_ns - self.epoch_ns).astype(np.float64) + table.duration_ns
        return Times(*found)

    def blocks(self) -> Iterator[tuple[Sequence[int], Times]]:
        """All members, some at a time: their rows and times."""
        for begin in range(0, len(self.members), _BLOCK_ROWS):
            rows = range(begin, min(begin + _BLOCK_ROWS, len(self.members)))
            yield rows, self.times(rows)

    def row_of(self, rank: int) -> int | None:
        """The row of a rank; None: it is no member."""
        row = int(np.searchsorted(self.members, rank))
        return row if row < len(self.members) and self.members[row] == rank else None


def groups_of(ranks: Sequence[RankSummary]) -> list[Group]:
    """The process groups of a job that have at least two members, the one with most collectives first."""
    names: dict[str, list[int]] = {}
    for index, rank in enumerate(ranks):
        used = np.unique(rank.collectives().call)
        for name in dict.fromkeys(rank.calls.group[call] for call in used.tolist()):
            names.setdefault(name, []).append(index)
    found = [_group(name, members, ranks) for name, members in names.items() if len(members) > 1]
    return sorted(found, key=lambda group: -group.shape[0] * group.shape[1])


def _group(name: str, members: list[int], ranks: Sequence[RankSummary]) -> Group:
    # A recording may begin late, and other recorders leave out small ones.
    sequence, epoch_ns = np.empty(0, np.int64), None
    for index in members:
        table = _in_group(name, ranks[index])
        first_ns = int(table.start_ns.min())
        epoch_ns = first_ns if epoch_ns is None else min(epoch_ns, first_ns)
        if not np.array_equal(sequence, table.sequence):
            sequence = np.union1d(sequence, table.sequence)
    seen = _Seen(len(sequence), usual_ones(members))
    for index in members:
        seen.add(index, ranks[index], np.searchsorted(sequence, (own := _in_group(name, ranks[index])).sequence), own)
    kinds = list(seen.codes)
    return Group(
        name=name,
        members=np.array(members, np.int64),
        operation=[kinds[each][0] for each in seen.code.tolist()],
        size_bytes=np.array([kinds[each][1] for each in seen.code.tolist()], np.int64),
        step=seen.steps(len(members)),
        is_step_told=bool(seen.is_step_told.any()),
        transfer_ns=seen.shortest_ns,
        second_ns=seen.second_ns,
        last=np.where(seen.n_recorded > 1, np.searchsorted(members, seen.last), -1),
        n_recorded=seen.n_recorded,
        n_of_member=np.array(seen.n_of_member, np.int64),
        epoch_ns=epoch_ns or 0,
        n_unequal=int(seen.is_unequal.sum()),
        sequence=sequence,
        ranks=ranks,
    )


class _Seen:
    """What is known of each collective after some members: [n_collectives].

    Args:
        n_collectives: How many there are.
        asked: Ranks that say which step each is of.
    """

    def __init__(self, n_collectives: int, asked: Sequence[int]) -> None:
        self.shortest_ns: FloatArray = np.full(n_collectives, np.inf)
        self.second_ns: FloatArray = np.full(n_collectives, np.inf)
        self.last = np.zeros(n_collectives, np.int64)
        self.n_recorded = np.zeros(n_collectives, np.int64)
        self.n_of_member: list[int] = []
        self.code: Int32Array = np.full(n_collectives, -1, np.int32)
        self.is_unequal = np.zeros(n_collectives, np.bool_)
        self.codes: dict[tuple[str, int], int] = {}
        self.is_step_told = np.zeros(n_collectives, np.bool_)
        self._row_of = {index: row for row, index in enumerate(asked)}
        self._told: Int32Array = np.full((len(asked), n_collectives), _NO_COLLECTIVE, np.int32)

    def add(self, index: int, rank: RankSummary, at: Int64Array, table: CollectiveTable) -> None:
        """Add a member, whose collectives are in the columns `at`."""
        calls, took_ns = rank.calls, table.duration_ns.astype(np.float64)
        known = [
            self.codes.setdefault((calls.operation[call], int(calls.size_bytes[call])), len(self.codes))
            for call in range(len(calls))
        ]
        code, before = np.array(known, np.int32)[table.call], self.code[at]
        self.is_unequal[at] |= (before >= 0) & (before != code)
        self.code[at] = np.maximum(before, code)
        shortest_ns = self.shortest_ns[at]
        is_shorter = took_ns < shortest_ns
        self.second_ns[at] = np.where(is_shorter, shortest_ns, np.minimum(self.second_ns[at], took_ns))
        self.shortest_ns[at] = np.minimum(shortest_ns, took_ns)
        self.last[at[is_shorter]] = index
        self.n_recorded[at] += 1
        self.n_of_member.append(len(table))
        self.is_step_told[at] |= table.step >= 0
        if (row := self._row_of.get(index)) is not None:
            self._told[row, at] = table.step

    def steps(self, n_members: int) -> Int32Array:
        """The step of each collective, as most ranks say; where none does, how often its pattern has come before."""
        if (self.is_step_told & (self.n_recorded == n_members)).any():
            is_known = np.flatnonzero((self._told >= 0).any(axis=0))
            told, middle = self._told[:, is_known], np.zeros(len(self.code))
            middle[is_known] = np.nanmedian(np.where(told < 0, np.nan, told), axis=0)
            return np.maximum.accumulate(middle).astype(np.int32)
        n = len(self.code)
        period = next((each for each in range(1, min(n // 3, _MAX_PERIOD) + 1) if _repeats(self.code, each)), 1)
        # From the end: what comes once is at the start.
        return ((np.arange(n) + -n % period) // period).astype(np.int32)


def _in_group(name: str, rank: RankSummary) -> CollectiveTable:
    table = rank.collectives()
    is_ours = np.array([group == name for group in rank.calls.group], np.bool_)[table.call]
    return table if is_ours.all() else table.take(is_ours)


def _repeats(code: Int32Array, period: int) -> bool:
    return bool((code[period:] == code[:-period]).mean() >= _SAME)
