"""What changed between two profiles, or two sets of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bragg.analyze.comparing.repeats import Spread
from bragg.model.ids import NodeId
from bragg.model.table import FloatArray, Int64Array
from bragg.model.tree import CallTree


@dataclass(frozen=True, eq=False)
class Comparison:
    """Values of one metric before and after, by node of a common tree.

    Attributes:
        metric: Its name.
        unit: Its unit.
        tree: Call paths, or what ran as children of the root, of either profile.
        spread: Inclusive values of nodes and their noise, in `unit`.
        n_before: Runs before.
        n_after: Runs after.
        is_paired: Runs before and after were recorded in turn, and are compared in pairs.
        count_before: float64 [n_nodes], how often it ran; NaN where it was not counted.
        count_after: float64 [n_nodes], the same after the change.
        rows: int64, the nodes that tell something of their own, the largest change first; not the root.
        of: What values are of: `a turn`; empty: whole runs.
    """

    metric: str
    unit: str
    tree: CallTree
    spread: Spread
    n_before: int
    n_after: int
    is_paired: bool
    count_before: FloatArray
    count_after: FloatArray
    rows: Int64Array
    of: str = ""

    @property
    def before(self) -> FloatArray:
        """Values before: [n_nodes]."""
        return self.spread.before

    @property
    def after(self) -> FloatArray:
        """Values after: [n_nodes]."""
        return self.spread.after

    @property
    def change(self) -> FloatArray:
        """What was added: [n_nodes]."""
        return self.after - self.before

    def relative(self, node: NodeId) -> float:
        """The change as a share of what was there before; infinite for what is new."""
        before, change = float(self.before[node]), float(self.change[node])
        return change / before if before else float(np.copysign(np.inf, change)) if change else 0.0
