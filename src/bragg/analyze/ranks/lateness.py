"""Which rank the others waited for, in which step, and what that cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bragg.analyze.ranks.aligned import Group, usual_ones
from bragg.analyze.ranks.step_work import ends_of_steps
from bragg.model.ranks.summary import RankSummary
from bragg.model.table import FloatArray


@dataclass(frozen=True, eq=False)
class Lateness:
    """A row for each rank, a column for each step.

    Attributes:
        cost_ns: Time that the average other rank of a process group lost because this one came last: [ranks, steps].
        step_ns: How long each step took, between the ends of its last collective and of the one before: [steps].
        startup_ns: What the first collectives cost before the first step was over, by rank: [ranks].
        is_unit_step: Whether columns are steps of the program, not rounds of collectives.
        startup_wall_ns: From the start of the first collective to the end of the first step; 0: not known.
    """

    cost_ns: FloatArray
    step_ns: FloatArray
    startup_ns: FloatArray
    is_unit_step: bool
    startup_wall_ns: float = 0.0

    @property
    def n_steps(self) -> int:
        """How many steps there are, without the start."""
        return len(self.step_ns)

    @cached_property
    def wall_ns(self) -> float:
        """Of all steps."""
        return float(np.nansum(self.step_ns))

    @cached_property
    def excess_ns(self) -> FloatArray:
        """What each rank cost beyond the median of the others: healthy ranks come last in turns: [ranks, steps]."""
        return self.cost_ns - _median_of_others(self.cost_ns)

    @cached_property
    def usual_ns(self) -> float:
        """What the second slowest rank costs in the median step: that much comes by chance."""
        if len(self.cost_ns) < 2 or not self.cost_ns.size:
            return 0.0
        return float(np.median(np.partition(self.cost_ns, -2, axis=0)[-2]))


def _median_of_others(values: FloatArray) -> FloatArray:
    n_ranks = len(values)
    if n_ranks < 2:
        return np.zeros_like(values)
    if n_ranks > 8:  # One rank does not move the median.
        return np.broadcast_to(np.median(values, axis=0), values.shape)
    return np.stack([np.median(np.delete(values, row, axis=0), axis=0) for row in range(n_ranks)])


def lateness_of(ranks: Sequence[RankSummary], groups: Sequence[Group], *, is_whole: bool) -> Lateness:
    """The costs of late ranks.

    Args:
        ranks: The ranks.
        groups: Their process groups; at least one.
        is_whole: Whether collectives are known one by one; otherwise the run is one step.
    """
    first, last = min(int(group.step.min()) for group in groups), max(int(group.step.max()) for group in groups)
    n_steps = last - first + 1
    of_members: dict[bytes, list[Group]] = {}
    for group in groups:
        if len({_stage(ranks[member]) for member in group.members.tolist()}) == 1:
            of_members.setdefault(group.members.tobytes(), []).append(group)
    cost = _costs_of(list(of_members.values()), len(ranks), first, n_steps)
    if not is_whole:
        wall = np.array([float(np.median([rank.wall_ns for rank in ranks]))])
        return Lateness(cost, wall, np.zeros(len(ranks)), False)
    ends = ends_of_steps(groups, usual_ones(range(len(ranks))))
    step_ns = np.nan_to_num(_median(np.diff(ends, axis=1)))
    is_unit_step = any(group.is_step_told for group in groups)
    return Lateness(cost[:, 1:], step_ns, cost[:, 0], is_unit_step, _startup_wall_ns(groups[0]))


def _costs_of(sets: Sequence[Sequence[Group]], n_ranks: int, first: int, n_steps: int) -> FloatArray:
    """What each rank cost the others in each step: [n_ranks, n_steps].

    What a rank costs one group it does not cost another again, since all of them waited at the same time; and what it
    waited in one group itself is not its own lateness in another.

    Args:
        sets: Groups of the same members each.
        n_ranks: Of the job.
        first: The first step.
        n_steps: From that one on.
    """
    cost, waited = np.zeros((n_ranks, n_steps)), np.zeros((n_ranks, n_steps))
    waits = [_waited_in(groups, first, n_steps) for groups in sets] if len(sets) > 1 else []
    for groups, own in zip(sets, waits, strict=False):
        waited[groups[0].members] += own
    for number, groups in enumerate(sets):
        members = groups[0].members
        elsewhere = waited[members] - waits[number] if waits else 0.0
        cost[members] = np.maximum(cost[members], _cost_of(groups, first, n_steps) - elsewhere)
    return cost


def _waited_in(groups: Sequence[Group], first: int, n_steps: int) -> FloatArray:
    """How long each member waited in vain in each step, in groups of the same members: [n_members, n_steps]."""
    waited = np.zeros((len(groups[0].members), n_steps))
    for group in groups:
        begins = np.flatnonzero(np.append(True, group.step[1:] != group.step[:-1]))
        for rows, times in group.blocks():
            of_steps = np.add.reduceat(np.nan_to_num(group.wait_ns(times)), begins, axis=1)
            waited[np.ix_(np.array(rows), group.step[begins] - first)] += of_steps
    return waited


def _cost_of(groups: Sequence[Group], first: int, n_steps: int) -> FloatArray:
    """What each member cost the others in each step in groups of the same members: [n_members, n_steps]."""
    cost = np.zeros((len(groups[0].members), n_steps))
    for group in groups:
        known = group.last >= 0
        np.add.at(cost, (group.last[known], group.step[known] - first), group.cost_ns[known])
    return cost


def _startup_wall_ns(group: Group) -> float:
    times = group.times(usual_ones(range(len(group.members))))
    begins = times.end_ns[:, 0] - times.duration_ns[:, 0]
    lasted = times.end_ns[:, group.last_of_steps[0]] - begins
    return float(np.nan_to_num(_median(lasted[:, None])[0]))


def _stage(rank: RankSummary) -> tuple[int, ...]:
    """Stages of a pipeline do different work; other ranks of a group do the same."""
    return tuple(at for axis, at in rank.role if axis.startswith("pp"))


def _median(values: FloatArray) -> FloatArray:
    is_known = ~np.isnan(values).all(axis=0)
    found = np.full(values.shape[1], np.nan)
    if is_known.any():
        found[is_known] = np.nanmedian(values[:, is_known], axis=0)
    return found
