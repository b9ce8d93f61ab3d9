"""Intervals of one GPU put together."""

from __future__ import annotations

import numpy as np

from bragg.model.table import FloatArray, Int64Array
from bragg.model.trace import SliceTable

__all__ = ["Busy"]


class Busy:
    """The time in which at least one of some slices ran.

    Args:
        slices: In any order.
    """

    def __init__(self, slices: SliceTable) -> None:
        order = np.argsort(slices.start_ns, kind="stable")
        begins = slices.start_ns[order]
        until = np.maximum.accumulate(begins + slices.duration_ns[order]) if len(order) else begins
        first = np.flatnonzero(np.append(True, begins[1:] > until[:-1])[: len(begins)])
        opens = begins[first]
        closes = until[np.append(first[1:] - 1, len(until) - 1)] if len(first) else opens
        worked = np.append(0, np.cumsum(closes - opens))
        self._times = np.stack([opens, closes], axis=1).reshape(-1)
        self._worked = np.stack([worked[:-1], worked[1:]], axis=1).reshape(-1)

    def before(self, time_ns: Int64Array) -> Int64Array:
        """How much of it lies before these times: ns [n]."""
        if not len(self._times):
            return np.zeros(len(time_ns), np.int64)
        # Epoch times have more digits than a float64.
        origin = self._times[0]
        found: FloatArray = np.interp(time_ns - origin, self._times - origin, self._worked)
        return found.astype(np.int64)
