"""Times of runs without that in which other programs had the core of the main thread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bragg.model import Profile
from bragg.model.meta.run import Run
from bragg.model.table import FloatArray

_LEAST_SHARE = 0.01
"""Of a run: less changes no verdict."""
_OF_HOST = ("host_time", "wall_time")
# A main thread that waited for a core for this share of its time, and this long.
_STARVED, _LONG_NS = 0.2, 1_000_000_000


def starved_share(run: Run) -> float:
    """For how much of its time the main thread was ready to run, and had no core, 0 to 1; 0: not for long."""
    ran_ns, ready_ns = run.main_thread_ns or (0, 0)
    is_long = ready_ns >= max(_LONG_NS, _STARVED * (ran_ns + ready_ns))
    return ready_ns / (ran_ns + ready_ns) if is_long else 0.0


def may_be_starved(before: float, after: float, share: float) -> bool:
    """Whether that lack of a core, which makes a time longer by its share at most, may be all of a difference."""
    return share > 0 and min(before, after) >= (1 - share) * max(before, after)


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
