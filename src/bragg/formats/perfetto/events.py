"""Begins and ends of nested slices in the order in which a sequence of packets tells them."""

from __future__ import annotations

import numpy as np

from bragg.model.table import Int64Array


class Events:
    """Begins and ends of nested slices, by time.

    At one time slices that began earlier end first, inner before outer; then others begin, outer before inner.

    Attributes:
        row: The slice of each event.
        is_end: Whether it ends there.
        time_ns: Ascending.
        delta_ns: Time since the event before.
    """

    def __init__(self, start_ns: Int64Array, duration_ns: Int64Array) -> None:
        rows = np.arange(len(start_ns))
        is_empty = duration_ns == 0
        # A stable sort by time keeps this order: ends from the last slice to the first, then begins, an empty slice's
        # end straight after its begin.
        begins = np.repeat(rows, 1 + is_empty)
        ends = rows[~is_empty][::-1]
        row = np.concatenate([ends, begins])
        is_end = np.concatenate([np.ones(len(ends), np.bool_), np.diff(begins, prepend=-1) == 0])
        time_ns = start_ns[row] + np.where(is_end, duration_ns[row], 0)
        order = np.argsort(time_ns, kind="stable")
        self.row, self.is_end, self.time_ns = row[order], is_end[order], time_ns[order]
        self.delta_ns = np.diff(self.time_ns, prepend=self.time_ns[:1])
