"""How long the launches of each kernel took: percentiles of a run whose events were not kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bragg.duration_buckets import STEP_BITS, STEPS, bucket_in_octave
from bragg.model.table import FloatArray, Int32Array, Int64Array, Table

MAX_BUCKET = (64 - STEP_BITS) * STEPS + STEPS - 1
"""The bucket of the longest duration of 64 bits."""


def buckets_of(duration_ns: NDArray[np.int64]) -> Int32Array:
    """The bucket of each duration, as [n]; see `bragg.duration_buckets`."""
    _, bits = np.frexp(duration_ns.astype(np.float64))
    octave = np.maximum(bits.astype(np.int64) - STEP_BITS, 1)
    bucket: Int32Array = bucket_in_octave(duration_ns, octave).astype(np.int32)
    return bucket


def bucket_range(bucket: NDArray[np.int32]) -> tuple[FloatArray, FloatArray]:
    """First duration of each bucket and of the one after it, ns: two float64 [n]."""
    octave = np.maximum(bucket >> STEP_BITS, 1).astype(np.float64)
    step = bucket - (octave - 1) * STEPS
    width = 2.0 ** (octave - 1)
    return step * width, (step + 1) * width


@dataclass(frozen=True, eq=False)
class DurationTable(Table):
    """A histogram for each kernel.

    Attributes:
        frame: The kernel, a row of the frame table.
        bucket: See `bragg.duration_buckets`.
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

    def launches(self, n_rows: int) -> Int64Array:
        """How many launches of each row are counted: int64 [n_rows]; `frame` is the row."""
        counts = np.zeros(n_rows, np.int64)
        np.add.at(counts, self.frame, self.count)
        return counts

    def quantiles(self, q: float, n_rows: int) -> FloatArray:
        """A quantile of the durations of each row, ns, float64 [n_rows]: within 3.2 %.

        Args:
            q: 0 to 1; 0.5 is the median.
            n_rows: Rows that `frame` stands for.

        Returns:
            The middle of the bucket that the quantile falls in; NaN where nothing ran.
        """
        if not len(self):
            return np.full(n_rows, np.nan)
        own = self.combined()
        launches = own.launches(n_rows)
        wanted = np.cumsum(launches) - launches + np.maximum(q * launches, 1)
        found = np.minimum(np.searchsorted(np.cumsum(own.count), wanted), len(own) - 1)
        low, high = bucket_range(own.bucket[found])
        middle: FloatArray = np.where(launches > 0, (low + high - 1) / 2, np.nan)
        return middle
