"""The time in which at least one of some intervals was open."""

from __future__ import annotations

import numpy as np

from bragg.model.table import Int64Array


def busy_curve(start_ns: Int64Array, duration_ns: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Beginnings and ends of the stretches in which any interval was open, and the time in them until each.

    Args:
        start_ns: Ascending: [n].
        duration_ns: [n].

    Returns:
        Two arrays of equal length, ascending, in ns; empty without intervals.
    """
    if not len(start_ns):
        return start_ns, start_ns
    until_ns = np.maximum.accumulate(start_ns + duration_ns)
    first = np.flatnonzero(np.append(True, start_ns[1:] > until_ns[:-1]))
    opens_ns, closes_ns = start_ns[first], until_ns[np.append(first[1:] - 1, len(until_ns) - 1)]
    worked_ns = np.append(0, np.cumsum(closes_ns - opens_ns))
    times_ns = np.stack([opens_ns, closes_ns], axis=1).reshape(-1)
    return times_ns, np.stack([worked_ns[:-1], worked_ns[1:]], axis=1).reshape(-1)
