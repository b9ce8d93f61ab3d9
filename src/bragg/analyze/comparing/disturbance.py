"""Times of runs without that in which other programs had the core of the main thread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bragg.model import Profile
from bragg.model.table import FloatArray

_LEAST_SHARE = 0.01
"""Of a run: less changes no verdict."""
_OF_HOST = ("host_time", "wall_time")


def taken_from(runs: Sequence[Profile], values: FloatArray, metric: str) -> FloatArray | None:
    """How much of each value other programs took, at least, ns: float64 [n_runs].

    It is known of whole runs: of a value that is a part of one, imports left out, as large a part of it.

    Args:
        runs: Recordings of programs.
        values: Host time or wall time of each, ns: float64 [n_runs].
        metric: Which of them.

    Returns:
        None where a run does not tell, a GPU may have worked meanwhile, or no run was disturbed.
    """
    if metric not in _OF_HOST or any(run.measured("gpu_time") for run in runs):
        return None
    told = [(run.run.taken_ns, run.run.duration_ns) for run in runs]
    shares = np.array([taken / duration for taken, duration in told if taken is not None and duration])
    if len(shares) < len(runs) or shares.max() < _LEAST_SHARE:
        return None
    # Threads beside the main one may have had cores of their own.
    durations = np.array([duration for _, duration in told], np.float64)
    taken: FloatArray = shares * np.minimum(values, durations)
    return taken
