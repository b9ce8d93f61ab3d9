"""Ranks that hold up the others: all the time, from some step on, now and then, once, or at the start."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from bragg.analyze.ranks.aligned import Group
from bragg.analyze.ranks.lateness import Lateness
from bragg.model.table import FloatArray, Int64Array

# Generated jobs whose ranks vary by 3 % at random stay below half of each; see benchmarks/straggler_jobs.py.
_SHARE = 0.015  # of the time of all steps, for what lasts
_SURE = 5.0  # standard errors
_NEARLY_ALL, _LEAST_STEPS = 0.95, 20  # or late in so many of so many steps, however much it varies
_SOME_STEPS, _ONE_STEP = 0.3, 1.0  # of the median step: what comes now and then; twice at most (healthy H100: 0.43)
_FAR = 2.5  # times the longest of the other ranks: what is no matter of chance even if it comes once
_RARELY = 0.01  # chance at which long steps of one rank are no accident
_BEYOND = 2.0  # times what the second of the late ranks costs
_STEADY = 0.3  # of its mean lateness in the median step; less comes now and then
_LEAST_PART, _LEAST_PART_SHARE = 5, 0.1  # steps before and after a change
_LEAST_BLOCKS = 5  # whose spread tells the error of their mean
_NOISE = 8.0  # times what is usual for the second slowest rank
_LEAST_NS = 300_000.0
_STARTUP, _STARTUP_SHARE = 5.0, 0.5  # median steps; of the time that the start took: all ranks begin unevenly
_LEAST_STARTUP_NS = 300e6
_LEAST_SETUP_NS = 1e9  # two healthy H100: 0.4 s
_CHANGED = 0.3  # of the cost after a change, at most before it
_REST = 0.5  # of what a rank costs may be explained by another one that it waits for
_N_MOST = 8


class When(Enum):
    """How the lateness of a rank lies in time."""

    ALWAYS = "always"
    SINCE = "since"
    SOMETIMES = "sometimes"
    ONCE = "once"
    START = "start"
    WHOLE = "whole"  # Only sums are known.


@dataclass(frozen=True, eq=False)
class Straggler:
    """A rank that others wait for.

    Attributes:
        index: Of the rank.
        when: How its lateness lies in time.
        steps: Those in which it was late, -1 for the start: [n].
        each_ns: What it cost in the median one of them.
        cost_ns: What it cost in all of them.
    """

    index: int
    when: When
    steps: Int64Array
    each_ns: float
    cost_ns: float


def stragglers_of(
    found: Lateness, groups: Sequence[Group], host_waits_ns: FloatArray, *, is_whole: bool
) -> list[Straggler]:
    """The ranks that cost most, the worst first and late starts last; healthy ranks come last in turns, and are none.

    Args:
        found: The costs by step.
        groups: The process groups.
        host_waits_ns: How long the host of each rank was in collectives: [ranks].
        is_whole: Whether collectives are known one by one.
    """
    if not is_whole:
        candidates = list(_of_sums(found, groups))
    else:
        candidates = [
            straggler
            for index in range(len(found.cost_ns))
            for straggler in (_lasting(found, index) or _rare(found, index),)
            if straggler is not None
        ]
        # While collectives are set up, the hosts of the others wait for the one that comes last.
        late = list(_at_start(found, found.startup_ns, _LEAST_STARTUP_NS))
        late += [] if late else _at_start(found, -host_waits_ns, _LEAST_SETUP_NS)
        candidates = list(_with_first_steps(candidates, late))
    candidates.sort(key=lambda straggler: (straggler.when is When.START, -straggler.cost_ns))
    return list(_without_followers(candidates, groups))[:_N_MOST]


def _lasting(found: Lateness, index: int) -> Straggler | None:
    """One that is late in most steps, perhaps from one on."""
    excess = found.excess_ns[index]
    if len(excess) < _LEAST_PART:
        return None
    since = _change(excess)
    part = excess[since:]
    is_certain = part.mean() > _SURE * _standard_error(part)
    is_nearly_all = len(part) >= _LEAST_STEPS and np.mean(part > 0) >= _NEARLY_ALL
    is_sure = (is_certain or is_nearly_all) and np.median(part) > _STEADY * part.mean()
    if not is_sure or excess.sum() < _SHARE * found.wall_ns or part.mean() < _LEAST_NS / 10:
        return None
    means = found.excess_ns[:, since:].mean(axis=1)
    if part.mean() < _BEYOND * np.delete(means, index).max():
        return None
    steps = since + np.flatnonzero(part > 0)
    when = When.ALWAYS if since == 0 else When.SINCE
    return Straggler(index, when, steps, float(np.median(part[part > 0])), float(part.sum()))


def _standard_error(values: FloatArray) -> float:
    """Of the mean of values in order, of which neighbours may be alike: a slow second of a host lasts several steps.

    Source: Flyvbjerg and Petersen, J. Chem. Phys. 91, 461 (1989): the largest over the lengths of blocks.
    """
    found, blocks = 0.0, values
    while True:
        found = max(found, float(blocks.std(ddof=1) / np.sqrt(len(blocks))))
        if len(blocks) < 2 * _LEAST_BLOCKS:
            return found
        blocks = blocks[len(blocks) % 2 :].reshape(-1, 2).mean(axis=1)


def _change(excess: FloatArray) -> int:
    """The step from which a rank is late; 0: from the first."""
    n = len(excess)
    before = np.append(0.0, np.cumsum(excess))
    at = np.arange(1, n)
    low, high = before[1:n] / at, (before[n] - before[1:n]) / (n - at)
    # The split that explains most of the variance.
    gain = (high - low) * np.abs(high - low) * at * (n - at)
    least = max(_LEAST_PART, round(_LEAST_PART_SHARE * n))
    if n < 2 * least:
        return 0
    step = int(np.argmax(gain[least - 1 : n - least])) + least
    return step if high[step - 1] > 0 and low[step - 1] < _CHANGED * high[step - 1] else 0


def _rare(found: Lateness, index: int) -> Straggler | None:
    """One that is late in some steps, and much: more often than others are, or far more."""
    excess = found.excess_ns[index]
    if not len(excess):
        return None
    usual = float(np.median(found.step_ns))
    least = max(_NOISE * found.usual_ns, _LEAST_NS)
    long_ns = max(_SOME_STEPS * usual, least)
    steps = np.flatnonzero(excess > long_ns)
    if not len(steps):
        return None
    others = np.delete(found.excess_ns, index, axis=0)
    n_others = int((others > long_ns).any(axis=0).sum())
    if len(steps) <= 2 or not _is_beyond_chance(len(steps), n_others, len(found.cost_ns)):
        steps = np.flatnonzero(excess > max(_ONE_STEP * usual, least, _FAR * float(others.max())))
    if not len(steps):
        return None
    when = When.ONCE if len(steps) == 1 else When.SOMETIMES
    return Straggler(index, when, steps, float(np.median(excess[steps])), float(excess[steps].sum()))


def _is_beyond_chance(n_own: int, n_others: int, n_ranks: int) -> bool:
    """Whether so many of the long steps would rarely be one rank's, were they spread over the ranks at random."""
    n, share = n_own + n_others, 1 / n_ranks
    tail = sum(
        math.exp(_log_combinations(n, k) + k * math.log(share) + (n - k) * math.log(1 - share))
        for k in range(n_own, n + 1)
    )
    return n_ranks * tail < _RARELY


def _log_combinations(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _at_start(found: Lateness, cost_ns: FloatArray, least_ns: float) -> Iterator[Straggler]:
    """The rank that cost the others most before the first step was over: [ranks]."""
    if len(cost_ns) < 2:
        return
    index = int(np.argmax(cost_ns))
    cost = float(cost_ns[index] - np.median(np.delete(cost_ns, index)))
    usual = float(np.median(found.step_ns)) if found.n_steps else 0.0
    if cost > max(_STARTUP * usual, _STARTUP_SHARE * found.startup_wall_ns, least_ns):
        yield Straggler(index, When.START, np.array([-1]), cost, cost)


def _with_first_steps(candidates: list[Straggler], late: list[Straggler]) -> Iterator[Straggler]:
    """Both together; that a rank which starts late is late in the first steps, too, is a part of its start."""
    starts = {each.index: each for each in late}
    for each in candidates:
        start = starts.get(each.index)
        is_first = each.when in (When.ONCE, When.SOMETIMES) and bool(each.steps[-1] + 1 == len(each.steps))
        if start is None or not is_first:
            yield each
            continue
        cost = start.cost_ns + each.cost_ns
        starts[each.index] = replace(start, steps=np.append(start.steps, each.steps), each_ns=cost, cost_ns=cost)
    yield from starts.values()


def _of_sums(found: Lateness, groups: Sequence[Group]) -> Iterator[Straggler]:
    """The rank that spent least time in collectives, where only sums are known."""
    for group in groups:
        spent = np.concatenate([times.duration_ns[:, 0] for _, times in group.blocks()])
        least = int(np.nanargmin(spent))
        others = np.delete(spent, least)
        spread = float(np.median(np.abs(others - np.median(others)))) * 1.5
        cost = float(np.median(others) - spent[least])
        if cost > max(3 * _SHARE * found.wall_ns, 4 * spread, _LEAST_NS):
            yield Straggler(int(group.members[least]), When.WHOLE, np.zeros(1, np.int64), cost, cost)


def _without_followers(candidates: list[Straggler], groups: Sequence[Group]) -> Iterator[Straggler]:
    """Without ranks that are late in one group because they wait in another: for a rank that is listed already."""
    kept: list[Straggler] = []
    for each in candidates:
        if not any(_follows(each, other, groups) for other in kept):
            kept.append(each)
            yield each


def _follows(one: Straggler, other: Straggler, groups: Sequence[Group]) -> bool:
    """Whether a rank is late because it waited for another one, in a group that both are in."""
    if one.when is When.WHOLE or (one.when is When.START) != (other.when is When.START):
        return False
    waited = 0.0
    for group in groups:
        if one.index in group.members and other.index in group.members:
            mine, others = (int(np.searchsorted(group.members, each.index)) for each in (one, other))
            is_for_other = (group.last == others) & np.isin(group.step - _first(groups) - 1, one.steps)
            waited += float(np.nansum(group.wait_ns(group.times([mine]))[0, is_for_other]))
    return waited > _REST * one.cost_ns


def _first(groups: Sequence[Group]) -> int:
    return min(int(group.step.min()) for group in groups)
