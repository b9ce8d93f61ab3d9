"""Intervals of one GPU put together."""

from __future__ import annotations

import numpy as np

from bragg.analyze.busy import busy_curve
from bragg.model.table import FloatArray, Int64Array
from bragg.model.trace import SliceTable


class Busy:
    """The time in which at least one of some slices ran.

    Args:
        slices: In any order.
    """

    def __init__(self, slices: SliceTable) -> None:
        order = np.argsort(slices.start_ns, kind="stable")
        self._times, self._worked = busy_curve(slices.start_ns[order], slices.duration_ns[order])

    def before(self, time_ns: Int64Array) -> Int64Array:
        """How much of it lies before these times: ns [n]."""
        if not len(self._times):
            return np.zeros(len(time_ns), np.int64)
        # Epoch times have more digits than a float64.
        origin = self._times[0]
        found: FloatArray = np.interp(time_ns - origin, self._times - origin, self._worked)
        return found.astype(np.int64)
