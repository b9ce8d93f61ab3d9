"""Steps of a job with a lane for each rank: its collectives, and in them the wait for the last rank to arrive.

All members end a collective together, so the ends of the largest group put the lanes beside each other: no clock is
compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bragg.analyze.ranks.aligned import Group
from bragg.analyze.ranks.lateness import Lateness
from bragg.model.table import FloatArray, Int64Array


@dataclass(frozen=True)
class Bar:
    """A collective on one rank; times are from the start of the step.

    Attributes:
        begin_ns: When its kernel began.
        arrived_ns: When the last rank began, so that the transfer did.
        end_ns: When it ended.
        operation: What it does.
        last: Index of the rank that came last; None: not known.
    """

    begin_ns: float
    arrived_ns: float
    end_ns: float
    operation: str
    last: int | None


@dataclass(frozen=True, eq=False)
class StepLanes:
    """One step.

    Attributes:
        step: Its column in `Lateness.cost_ns`.
        ranks: Indices of ranks, ascending: [n_lanes].
        bars: Of each lane, by begin.
        length_ns: Of the step, on the lane that takes longest.
        n_left_out: Collectives of a rank behind those that are shown, at most.
    """

    step: int
    ranks: Int64Array
    bars: list[list[Bar]]
    length_ns: float
    n_left_out: int


def step_lanes(
    found: Lateness, groups: Sequence[Group], most_steps: int, most_ranks: int, most_bars: int
) -> list[StepLanes]:
    """The steps in which one rank costs the others most, the most first; empty: none does.

    Args:
        found: What ranks cost.
        groups: The process groups, the one with most collectives first.
        most_steps: How many steps at most.
        most_ranks: How many lanes at most: those of ranks that cost most in the step.
        most_bars: How many collectives of a lane at most, from the start of the step on.
    """
    main = groups[0]
    first = min(int(group.step.min()) for group in groups) + 1
    cost_ns = found.cost_ns[main.members].max(axis=0, initial=0.0)
    chosen = np.argsort(-cost_ns, kind="stable")[:most_steps]
    chosen = chosen[(cost_ns[chosen] > 0) & np.isin(first + chosen, main.step)]
    if not len(chosen):
        return []
    columns = np.flatnonzero(np.isin(main.step, first + chosen))
    ends_ns = np.concatenate([times.end_ns[:, columns] for _, times in main.blocks()])
    steps = main.step[columns]
    return [
        _of_step(
            column, first + column, _shifts(ends_ns[:, steps == first + column]), found, groups, most_ranks, most_bars
        )
        for column in chosen.tolist()
    ]


def _of_step(
    column: int,
    step: int,
    shift_ns: FloatArray,
    found: Lateness,
    groups: Sequence[Group],
    most_ranks: int,
    most_bars: int,
) -> StepLanes:
    main = groups[0]
    is_there = ~np.isnan(shift_ns)
    cost_ns = found.cost_ns[main.members[is_there], column]
    rows = np.flatnonzero(is_there)[np.argsort(-cost_ns, kind="stable")][:most_ranks]
    lanes = {int(main.members[row]): float(shift_ns[row]) for row in np.sort(rows).tolist()}
    bars = [_bars(rank, by, groups, step, main.epoch_ns) for rank, by in lanes.items()]
    start_ns = _start_ns(main, step, rows, shift_ns, bars)
    shown = [[_moved(bar, start_ns) for bar in each[:most_bars]] for each in bars]
    return StepLanes(
        column,
        np.array(list(lanes), np.int64),
        shown,
        max(bar.end_ns for each in shown for bar in each),
        max(len(each) for each in bars) - max(len(each) for each in shown),
    )


def _shifts(end_ns: FloatArray) -> FloatArray:
    """What to take from the times of each member so that ends fall together: [n_members]; NaN: it has none of them."""
    reference = end_ns[(~np.isnan(end_ns)).sum(axis=1).argmax()]
    difference = end_ns - reference
    shift = np.full(len(end_ns), np.nan)
    known = ~np.isnan(difference).all(axis=1)
    shift[known] = np.nanmedian(difference[known], axis=1)
    return shift


def _bars(rank: int, shift_ns: float, groups: Sequence[Group], step: int, epoch_ns: int) -> list[Bar]:
    found = []
    for group in groups:
        if (row := group.row_of(rank)) is None:
            continue
        times = group.times([row])
        moved_ns = group.epoch_ns - epoch_ns - shift_ns
        for column in np.flatnonzero((group.step == step) & ~np.isnan(times.end_ns[0])).tolist():
            end_ns, last = times.end_ns[0, column] + moved_ns, int(group.last[column])
            begin_ns = end_ns - times.duration_ns[0, column]
            arrived_ns = max(end_ns - group.transfer_ns[column], begin_ns)
            by = int(group.members[last]) if last >= 0 else None
            found.append(Bar(float(begin_ns), float(arrived_ns), float(end_ns), group.operation[column], by))
    return sorted(found, key=lambda bar: bar.begin_ns)


def _start_ns(group: Group, step: int, rows: Int64Array, shift_ns: FloatArray, bars: Sequence[Sequence[Bar]]) -> float:
    """When the step began: with the last collective of the one before, else with its own first one."""
    first = min(each[0].begin_ns for each in bars)
    before = group.last_of_steps[group.steps == step - 1]
    if not len(before):
        return first
    ends = group.times(rows.tolist()).end_ns[:, before[0]] - shift_ns[rows]
    return first if np.isnan(ends).all() else min(first, float(np.nanmedian(ends)))


def _moved(bar: Bar, start_ns: float) -> Bar:
    begin, arrived, end = (each - start_ns for each in (bar.begin_ns, bar.arrived_ns, bar.end_ns))
    return Bar(begin, arrived, end, bar.operation, bar.last)
