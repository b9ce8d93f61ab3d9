"""What changed between two profiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bragg.model.table import FloatArray, Int64Array
from bragg.model.tree import CallTree

__all__ = ["Comparison"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Values of one metric before and after, by node of a common tree.

    Attributes:
        metric: Its name.
        unit: Its unit.
        tree: Call paths, or what ran as children of the root, of either profile.
        before: float64 [n_nodes], inclusive, in `unit`.
        after: float64 [n_nodes], the same after the change.
        count_before: float64 [n_nodes], number of runs; NaN where it was not counted.
        count_after: float64 [n_nodes], the same after the change.
        rows: int64, the nodes that tell something of their own, the largest change first; not the root.
    """

    metric: str
    unit: str
    tree: CallTree
    before: FloatArray
    after: FloatArray
    count_before: FloatArray
    count_after: FloatArray
    rows: Int64Array

    @property
    def change(self) -> FloatArray:
        """What was added: [n_nodes]."""
        return self.after - self.before

    def relative(self, node: int) -> float:
        """The change as a share of what was there before; infinite for what is new."""
        before, change = float(self.before[node]), float(self.change[node])
        return change / before if before else float(np.copysign(np.inf, change)) if change else 0.0
