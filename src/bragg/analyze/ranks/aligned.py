"""The same collectives of all ranks beside each other, by process group and sequence: no clock is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bragg.model.ranks.summary import CollectiveTable, RankSummary
from bragg.model.table import FloatArray, Int32Array, Int64Array

__all__ = ["COUNTED", "Group", "groups_of"]

COUNTED = ("compute_ns", "copy_ns", "data_ns", "launches")
"""Columns of `CollectiveTable` that count what a rank has done until a collective ends."""
_MAX_PERIOD = 512
_SAME = 0.98
_NO_COLLECTIVE = -2  # of a rank, where others have a step or -1
_BLOCK_COLUMNS = 64


@dataclass(frozen=True, eq=False)
class Group:
    """A process group: a row for each member, a column for each collective; NaN where a member has none.

    All of them end a collective together, so the last one to arrive has the shortest.

    Attributes:
        name: As the profiles call it.
        members: Indices of ranks, ascending: [n_members].
        operation: Of each collective: [n_collectives].
        size_bytes: [n_collectives]; -1: not known.
        step: [n_collectives]; -1: not known.
        duration_ns: [n_members, n_collectives].
        exposed_ns: [n_members, n_collectives]; NaN: not known.
        end_ns: [n_members, n_collectives], each by the clock of its host, after `epoch_ns`.
        epoch_ns: So that ends are exact.
        steps: The steps, ascending: [n_steps].
        counted: By name of a column of `CollectiveTable`, what had been counted at the end of the last collective of
            each step: [n_members, n_steps].
        n_unequal: Collectives in which members disagree on the operation.
    """

    name: str
    members: Int64Array
    operation: list[str]
    size_bytes: Int64Array
    step: Int32Array
    duration_ns: FloatArray
    exposed_ns: FloatArray
    end_ns: FloatArray
    epoch_ns: int
    steps: Int64Array
    counted: dict[str, FloatArray]
    n_unequal: int

    @cached_property
    def last_of_steps(self) -> Int64Array:
        """The last collective of each step: [n_steps]."""
        return _last_of_steps(self.step)

    @cached_property
    def transfer_ns(self) -> FloatArray:
        """What the last one to arrive saw: [n_collectives]."""
        lowest: FloatArray = np.nanmin(self.duration_ns, axis=0)
        return lowest

    @cached_property
    def last(self) -> NDArray[np.intp]:
        """The member that arrived last at each collective, intp [n_collectives]; -1: fewer than two were recorded."""
        is_shared = (~np.isnan(self.duration_ns)).sum(axis=0) > 1
        return np.where(is_shared, np.nanargmin(self.duration_ns, axis=0), -1)

    @cached_property
    def wait_ns(self) -> FloatArray:
        """How long each member waited in vain, where nothing else ran on its GPU: [n_members, n_collectives]."""
        waited = self.duration_ns - self.transfer_ns
        return np.fmin(waited, self.exposed_ns)

    @cached_property
    def cost_ns(self) -> FloatArray:
        """What each collective cost the average one of the others because the last one was late: [n_collectives]."""
        n_others = np.maximum((~np.isnan(self.wait_ns)).sum(axis=0) - 1, 1)
        cost: FloatArray = np.nansum(self.wait_ns, axis=0) / n_others
        return np.where(self.last >= 0, cost, 0.0)


def groups_of(ranks: Sequence[RankSummary]) -> list[Group]:
    """The process groups of a job that have at least two members, the one with most collectives first."""
    names: dict[str, list[int]] = {}
    for index, rank in enumerate(ranks):
        used = np.unique(rank.collectives.call)
        for name in dict.fromkeys(rank.calls.group[call] for call in used.tolist()):
            names.setdefault(name, []).append(index)
    found = [_group(name, members, ranks) for name, members in names.items() if len(members) > 1]
    return sorted(found, key=lambda group: -group.duration_ns.size)


def _group(name: str, members: list[int], ranks: Sequence[RankSummary]) -> Group:
    # A recording may begin late, and other recorders leave out small ones.
    numbers = np.unique(np.concatenate([_in_group(name, ranks[index]).sequence for index in members]))
    shape = (len(members), len(numbers))
    columns = {key: np.full(shape, np.nan) for key in ("duration_ns", "exposed_ns", "end_ns")}
    told_step = np.full(shape, _NO_COLLECTIVE, np.int32)
    code = np.full(shape, -1, np.int32)
    starts = (_in_group(name, ranks[index]).start_ns for index in members)
    epoch_ns = min((int(start_ns.min()) for start_ns in starts if len(start_ns)), default=0)
    codes: dict[tuple[str, int], int] = {}
    for row, index in enumerate(members):
        calls, table = ranks[index].calls, _in_group(name, ranks[index])
        known = [
            codes.setdefault((calls.operation[call], int(calls.size_bytes[call])), len(codes))
            for call in range(len(calls))
        ]
        at = np.searchsorted(numbers, table.sequence)
        code[row, at] = np.array(known, np.int32)[table.call]
        columns["duration_ns"][row, at] = table.duration_ns
        columns["exposed_ns"][row, at] = np.where(table.exposed_ns < 0, np.nan, table.exposed_ns)
        columns["end_ns"][row, at] = (table.start_ns - epoch_ns).astype(np.float64) + table.duration_ns
        told_step[row, at] = table.step
    first = code.max(axis=0)
    is_unequal = ((code >= 0) & (code != first)).any(axis=0)
    kinds = list(codes)
    step = _steps(told_step, first)
    last_of_steps = _last_of_steps(step)
    return Group(
        name=name,
        members=np.array(members, np.int64),
        operation=[kinds[each][0] for each in first.tolist()],
        size_bytes=np.array([kinds[each][1] for each in first.tolist()], np.int64),
        step=step,
        duration_ns=columns.pop("duration_ns"),
        exposed_ns=columns.pop("exposed_ns"),
        end_ns=columns.pop("end_ns"),
        epoch_ns=epoch_ns,
        steps=step[last_of_steps].astype(np.int64),
        counted=_counted([(name, ranks[index]) for index in members], numbers, last_of_steps),
        n_unequal=int(is_unequal.sum()),
    )


def _in_group(name: str, rank: RankSummary) -> CollectiveTable:
    """The collectives of one group; made anew at each call: those of thousands of ranks would fill the memory."""
    is_ours = np.array([group == name for group in rank.calls.group], np.bool_)[rank.collectives.call]
    return rank.collectives if is_ours.all() else rank.collectives.take(is_ours)


def _last_of_steps(step: Int32Array) -> Int64Array:
    return np.flatnonzero(np.append(step[1:] != step[:-1], True)).astype(np.int64)


def _counted(
    members: Sequence[tuple[str, RankSummary]], numbers: Int64Array, columns: Int64Array
) -> dict[str, FloatArray]:
    """What members of a group had counted at some of its collectives; of thousands of ranks all would fill memory."""
    found = {key: np.full((len(members), len(columns)), np.nan) for key in COUNTED}
    for member, (name, rank) in enumerate(members):
        table = _in_group(name, rank)
        row_of = np.full(len(numbers), -1)
        row_of[np.searchsorted(numbers, table.sequence)] = np.arange(len(table))
        place = row_of[columns]
        for key in COUNTED:
            found[key][member, place >= 0] = getattr(table, key)[place[place >= 0]]
    return found


def _steps(told: Int32Array, code: Int32Array) -> Int32Array:
    """The step of each collective, as most ranks say; where none does, the times its pattern has come before."""
    is_of_all = (told > _NO_COLLECTIVE).all(axis=0)
    if (is_of_all & (told >= 0).any(axis=0)).any():
        blocks = (told[:, begin : begin + _BLOCK_COLUMNS] for begin in range(0, told.shape[1], _BLOCK_COLUMNS))
        middle = [np.nanmedian(np.where(block < 0, np.nan, block), axis=0) for block in blocks]
        return np.maximum.accumulate(np.nan_to_num(np.concatenate(middle))).astype(np.int32)
    period = next((each for each in range(1, min(len(code) // 3, _MAX_PERIOD) + 1) if _repeats(code, each)), 1)
    # From the end: what comes once is at the start.
    return ((np.arange(len(code)) + -len(code) % period) // period).astype(np.int32)


def _repeats(code: Int32Array, period: int) -> bool:
    return bool((code[period:] == code[:-period]).mean() >= _SAME)
