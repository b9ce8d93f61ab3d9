"""Runs by turn of one loop: those of programs that made more or fewer turns are compared by what each turn took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bragg.analyze.wall.turns import Turns, turns_of
from bragg.model import MetricKind, Profile

# Sums of runs with so little more or fewer turns are as near to each other as they are.
_UNLIKE = 1.02


@dataclass(frozen=True)
class Loop:
    """A loop that all runs of both sides have.

    Attributes:
        place: File and line of it in the last run.
        before: Turns of the runs before, on average; `after`: of those after.
        of_run: The turns of each run, those before first.
    """

    place: str
    before: float
    after: float
    of_run: tuple[Turns, ...]


def same_loop(before: Sequence[Profile], after: Sequence[Profile]) -> Loop | None:
    """The loop whose turns are to be compared, since the sides made more or fewer; None: there is none, or as many."""
    found = [turns_of(run) for run in (*before, *after)]
    turns = tuple(each for each in found if each is not None)
    if len(turns) < len(found) or len({each.header for each in turns}) > 1:
        return None
    means = [float(np.mean([each.count for each in side])) for side in (turns[: len(before)], turns[len(before) :])]
    if max(means) < _UNLIKE * min(means):
        return None
    return Loop(turns[-1].place, means[0], means[1], turns)


def of_a_turn(run: Profile, turns: Turns) -> Profile:
    """What a turn takes on average: metrics that add up, without what is outside of the loop.

    Args:
        run: With the nodes of the run that the turns were found in.
        turns: Of its loop.
    """
    metrics = {
        name: metric
        if metric.kind is MetricKind.PROPERTY
        else metric.with_own(np.where(turns.is_inside, metric.own / turns.count, 0.0))
        for name, metric in run.metrics.items()
    }
    return replace(run, metrics=metrics)
