"""What ranks cost the others by step, drawn together to what fits on a screen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bragg.analyze.ranks.lateness import Lateness
from bragg.model.table import FloatArray, Int64Array

_PALE = 0.1


@dataclass(frozen=True, eq=False)
class HeatMap:
    """The ranks that cost most, a row each.

    Attributes:
        rows: Their indices, ascending: [n_rows].
        edges: The steps of column i are edges[i] to edges[i + 1], without the start: [n_columns + 1].
        cost_ns: Mean of these steps: [n_rows, n_columns].
        most_ns: What is shown darkest; what is less than a tenth of a step stays pale.
        shares: What each rank cost of the time of all steps: [n_rows].
        rest: The most that any other rank cost, likewise; None: there is none.
    """

    rows: Int64Array
    edges: Int64Array
    cost_ns: FloatArray
    most_ns: float
    shares: FloatArray
    rest: float | None


def heat_map(found: Lateness | None, n_rows: int, n_columns: int) -> HeatMap | None:
    """The heat map of a job; None: there is nothing to show.

    Args:
        found: Which rank the others waited for.
        n_rows: How many ranks at most.
        n_columns: How many columns at most.
    """
    if found is None or found.n_steps < 2 or not (found.cost_ns > 0).any():
        return None
    edges = np.linspace(0, found.n_steps, min(n_columns, found.n_steps) + 1).astype(np.int64)
    cost = np.add.reduceat(found.cost_ns, edges[:-1], axis=1) / np.diff(edges)
    shares = found.cost_ns.sum(axis=1) / (found.wall_ns or np.inf)
    order = np.argsort(-shares, kind="stable")
    rows = np.sort(order[:n_rows]).astype(np.int64)
    rest = float(shares[order[n_rows]]) if len(order) > n_rows else None
    most_ns = max(float(cost.max()), _PALE * float(np.median(found.step_ns)))
    return HeatMap(rows, edges, cost[rows], most_ns, shares[rows], rest)
