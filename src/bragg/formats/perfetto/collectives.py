"""What links a collective on one rank with the same one on others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bragg.formats.encodings.protobuf import Messages, message, number, text
from bragg.formats.perfetto import fields
from bragg.model.ranks.summary import CollectiveSlices
from bragg.model.table import BoolArray, Int64Array


class Links:
    """What links a collective with the same one on other ranks: arrows, a number of the work, its group and sequence.

    Args:
        found: The collectives.
        first_work: Number of each group's first collective.
        n_slices: Rows of the slice table.
    """

    def __init__(self, found: CollectiveSlices, first_work: Sequence[int], n_slices: int) -> None:
        self._groups = found.groups
        self._work = np.zeros(n_slices, np.uint64)
        self._work[found.row] = np.array(first_work, np.uint64)[found.group] + found.sequence.astype(np.uint64)
        self._group = np.zeros(n_slices, np.int32)
        self._group[found.row] = found.group
        self._sequence = np.zeros(n_slices, np.int64)
        self._sequence[found.row] = found.sequence

    def texts(self, rows: Int64Array, first: int) -> list[bytes]:
        """Texts that the slices `rows` of a lane, [n], refer to; groups are numbered from `first`."""
        if not self._work[rows].any():
            return []
        names = ((fields.GROUP, "group"), (fields.COLLECTIVE, "collective"))
        texts = [message(fields.ANNOTATION_NAMES, number(1, iid), text(2, name)) for iid, name in names]
        groups = enumerate(self._groups, first)
        return texts + [message(fields.ANNOTATION_STRINGS, number(1, iid), text(2, name)) for iid, name in groups]

    def add(self, event: Messages, rows: Int64Array, is_begin: BoolArray, first: int) -> None:
        """Add links to the events of the slices `rows`, [n_events], where one begins."""
        work = self._work[rows]
        is_linked = is_begin & (work != 0)
        if not is_linked.any():
            return
        n_rows = len(rows)
        group = Messages(n_rows).numbers(fields.ANNOTATION_NAME, np.full(n_rows, fields.GROUP))
        place = Messages(n_rows).numbers(fields.ANNOTATION_NAME, np.full(n_rows, fields.COLLECTIVE))
        event.messages(fields.ANNOTATION, group.numbers(fields.ANNOTATION_STRING, self._group[rows] + first), is_linked)
        event.messages(fields.ANNOTATION, place.numbers(fields.ANNOTATION_NUMBER, self._sequence[rows]), is_linked)
        event.fixed64(fields.FLOW, work, is_linked).numbers(fields.SAME_WORK, work, is_linked)
