"""How much of two runs is on call paths that both have."""

from __future__ import annotations

import numpy as np

from bragg.analyze.comparing.comparison import Comparison
from bragg.model.table import FloatArray

UNRELATED = 0.1
"""Runs that have less of their time on common paths than this are compared by what ran: every path is new or gone."""


def common_share(paths: Comparison) -> float:
    """The time on call paths that both runs have, as a share of the shorter run's: 0 to 1.

    Args:
        paths: By call path, of a metric that adds up.
    """
    before, after = (own_values(paths, values) for values in (paths.before, paths.after))
    shorter = min(before.sum(), after.sum())
    return float(np.minimum(before, after).sum() / shorter) if shorter > 0 else 1.0


def own_values(paths: Comparison, inclusive: FloatArray) -> FloatArray:
    """Values without what ran below: [n_nodes]; no less than nothing, which sums of fractions may give."""
    inner = paths.tree.parent[1:]
    below = np.bincount(inner, weights=inclusive[1:], minlength=len(inclusive))
    found: FloatArray = np.maximum(inclusive - below, 0)
    return found
