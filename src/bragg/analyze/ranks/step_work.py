"""What some ranks had done when a step of the program was over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bragg.analyze.ranks.aligned import Group
from bragg.model.table import FloatArray, Int64Array

_COUNTED = ("compute_ns", "copy_ns", "data_ns", "launches")


@dataclass(frozen=True, eq=False)
class StepWork:
    """What some ranks did in each step; NaN: not known.

    Attributes:
        ranks: Indices of these ranks, ascending: [n_ranks].
        done: By name of a column of `CollectiveTable` that counts: [n_ranks, n_steps].
    """

    ranks: Int64Array
    done: dict[str, FloatArray]

    def of(self, name: str, indices: Sequence[int] | Int64Array, steps: Int64Array) -> FloatArray:
        """One column, of those of several ranks that are here: [n_chosen, n_chosen_steps]."""
        found: FloatArray = self.done[name][np.ix_(np.isin(self.ranks, indices), steps)]
        return found


def work_of_steps(groups: Sequence[Group], ranks: Sequence[int], *, is_whole: bool) -> StepWork:
    """What some ranks did in each step after the first; if only sums are known, in the whole run."""
    chosen = np.unique(np.array(ranks, np.int64))
    counted = _at_ends_of_steps(groups, chosen, _COUNTED)
    return StepWork(chosen, {name: np.diff(each, axis=1) if is_whole else each for name, each in counted.items()})


def ends_of_steps(groups: Sequence[Group], ranks: Sequence[int]) -> FloatArray:
    """When the last collective of each step ended, each rank by its clock: [n_ranks, n_steps]; NaN: not known."""
    return _at_ends_of_steps(groups, np.unique(np.array(ranks, np.int64)), ("end_ns",))["end_ns"]


def _at_ends_of_steps(groups: Sequence[Group], ranks: Int64Array, names: Sequence[str]) -> dict[str, FloatArray]:
    first, last = min(int(group.step.min()) for group in groups), max(int(group.step.max()) for group in groups)
    found = {name: np.full((len(ranks), last - first + 1), np.nan) for name in names}
    for group in reversed(groups):  # The one with most collectives wins.
        for row in np.flatnonzero(np.isin(group.members, ranks)).tolist():
            at, table = group.table(row)
            place = np.full(len(group.sequence), -1)
            place[at] = np.arange(len(table))
            chosen = place[group.last_of_steps]
            own = np.searchsorted(ranks, group.members[row])
            for name, values in found.items():
                told = table.start_ns - group.epoch_ns + table.duration_ns if name == "end_ns" else getattr(table, name)
                values[own, group.steps - first] = np.where(chosen >= 0, told[chosen], np.nan)
    return found
