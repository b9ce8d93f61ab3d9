"""The median of values of which some count more than others."""

from __future__ import annotations

import numpy as np

from bragg.model.table import FloatArray, Int64Array


def weighted_median(values: FloatArray, weights: FloatArray | Int64Array) -> float:
    """The least value up to which half of the weight lies; both are [n], n at least 1."""
    order = np.argsort(values)
    sums = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(sums, sums[-1] / 2)])
