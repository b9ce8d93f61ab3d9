"""Launches that were interrupted because a GPU worked for another context, by how long launches took."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bragg.analyze.weighted_median import weighted_median
from bragg.model import DurationTable
from bragg.model.durations import bucket_range
from bragg.model.table import FloatArray

# A GPU that two contexts share works for one of them for about 2.5 ms (H100, driver 580), however short the kernel is
# that waits. Nothing of a program's own adds the same time to kernels of 2 us and of 600 us.
_LEAST_NS, _MOST_NS = 500_000, 20_000_000
_TIMES_MEDIAN = 3.0
_ALIKE, _SHARE_ALIKE = 0.15, 0.8
_N_KERNELS, _SPREAD = 3, 3.0  # of the medians of these kernels
_N_LAUNCHES_OF_KERNEL, _N_INTERRUPTED = 100, 20
_LEAST_SHARE = 0.05


@dataclass(frozen=True)
class TimeSlices:
    """What another context took of a program's GPU time.

    Attributes:
        launches: How many were interrupted, of kernels that tell.
        slice_ns: For how long, the median.
        share: Of the time of these kernels.
    """

    launches: int
    slice_ns: float
    share: float


def time_slices(durations: DurationTable) -> TimeSlices | None:
    """The slices of another context, if kernels of different length were now and then longer by the same time.

    Args:
        durations: Of a profile. A kernel that takes as long as a slice tells nothing.

    Returns:
        None where launches do not show it: at least three kernels whose medians are a factor of 3 apart, 20 launches
        of which four fifths are longer by the same time within 15 %, and 5 % of the time of these kernels.
    """
    if not len(durations):
        return None
    own = durations.combined()
    n_frames = int(own.frame.max()) + 1
    median_ns, launches = own.quantiles(0.5, n_frames), own.launches(n_frames)
    low, high = bucket_range(own.bucket)
    took_ns: FloatArray = (low + high - 1) / 2
    excess_ns = took_ns - median_ns[own.frame]
    is_longer = (
        (launches[own.frame] >= _N_LAUNCHES_OF_KERNEL)
        & (excess_ns > np.maximum(_LEAST_NS, _TIMES_MEDIAN * median_ns[own.frame]))
        & (excess_ns < _MOST_NS)
    )
    if not is_longer.any():
        return None
    slice_ns = weighted_median(excess_ns[is_longer], own.count[is_longer])
    is_slice = is_longer & (np.abs(excess_ns - slice_ns) <= _ALIKE * slice_ns)
    kernels = np.unique(own.frame[is_slice])
    n_interrupted = int(own.count[is_slice].sum())
    of_kernels = np.isin(own.frame, kernels)
    share = float((excess_ns * own.count)[is_slice].sum() / (took_ns * own.count)[of_kernels].sum())
    if (
        len(kernels) < _N_KERNELS
        or median_ns[kernels].max() < _SPREAD * median_ns[kernels].min()
        or n_interrupted < max(_N_INTERRUPTED, _SHARE_ALIKE * own.count[is_longer].sum())
        or share < _LEAST_SHARE
    ):
        return None
    return TimeSlices(n_interrupted, slice_ns, share)
