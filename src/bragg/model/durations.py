"""How long the launches of each kernel took: percentiles of a run whose events were not kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bragg.model.table import FloatArray, Int32Array, Int64Array, Table

__all__ = ["MAX_BUCKET", "DurationTable", "bucket_of", "bucket_range"]

_STEP_BITS = 4
_STEPS = 1 << _STEP_BITS
MAX_BUCKET = (64 - _STEP_BITS) * _STEPS + _STEPS - 1
"""The bucket of the longest duration of 64 bits."""


def bucket_of(duration_ns: NDArray[np.int64]) -> Int32Array:
    """The bucket of each duration, as [n]: 16 steps an octave, and 1 ns each below 16 ns."""
    _, bits = np.frexp(duration_ns.astype(np.float64))
    octave = np.maximum(bits.astype(np.int64) - _STEP_BITS, 1)
    bucket: Int32Array = ((octave << _STEP_BITS) + (duration_ns >> (octave - 1)) - _STEPS).astype(np.int32)
    return bucket


def bucket_range(bucket: NDArray[np.int32]) -> tuple[FloatArray, FloatArray]:
    """First duration of each bucket and of the one after it, ns: two float64 [n]."""
    octave = np.maximum(bucket >> _STEP_BITS, 1).astype(np.float64)
    step = bucket - (octave - 1) * _STEPS
    width = 2.0 ** (octave - 1)
    return step * width, (step + 1) * width


@dataclass(frozen=True, eq=False)
class DurationTable(Table):
    """A histogram for each kernel.

    Attributes:
        frame: The kernel, a row of the frame table.
        bucket: See `bucket_of`.
        count: Launches whose duration fell into the bucket.
        first_ns: When the first of them began.
    """

    frame: Int32Array
    bucket: Int32Array
    count: Int64Array
    first_ns: Int64Array

    def combined(self) -> DurationTable:
        """Equal buckets as one row, ordered by frame and bucket."""
        keys, row = np.unique(np.stack([self.frame, self.bucket], axis=1), axis=0, return_inverse=True)
        count = np.zeros(len(keys), np.int64)
        first_ns = np.full(len(keys), np.iinfo(np.int64).max)
        np.add.at(count, row.reshape(-1), self.count)
        np.minimum.at(first_ns, row.reshape(-1), self.first_ns)
        return DurationTable(keys[:, 0], keys[:, 1], count, first_ns)

    def quantile(self, frames: NDArray[np.int32], q: float) -> float:
        """A quantile of the durations of some kernels together, ns; within 3.2 %.

        Args:
            frames: [kernels], rows of the frame table.
            q: 0 to 1; 0.5 is the median.

        Returns:
            The middle of the bucket that the quantile falls in; NaN when none of them ran.
        """
        own = self.take(np.isin(self.frame, frames))
        own = own.take(np.argsort(own.bucket, kind="stable"))
        if not len(own):
            return float("nan")
        below = np.cumsum(own.count)
        found = int(np.searchsorted(below, max(q * below[-1], 1)))
        low, high = bucket_range(own.bucket[found : found + 1])
        return float((low[0] + high[0] - 1) / 2)
