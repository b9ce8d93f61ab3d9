"""Reads of what nobody has written yet, and what the launch writes there.

Where a program writes an element that it has not read before, the read came too early: in another order of the programs
it gets a value. Where all that write an element read it first, the first of them finds nothing in every order.
"""

from __future__ import annotations

import numpy as np

from bragg.debug.memory.access import Access
from bragg.debug.memory.storage import Buffer
from bragg.model.table import Array

Place = tuple[str, int]
"""File and line."""


class EarlyReads:
    """Follows the elements of a tensor from the first read that finds nothing there.

    Args:
        buffer: The tensor.
        programs: Of the launch.
    """

    def __init__(self, buffer: Buffer, programs: int) -> None:
        self._first, self._programs = buffer.first, programs
        self._is_followed = np.zeros(len(buffer.flat), bool)
        self._is_given = np.zeros(len(buffer.flat), bool)
        self._readers = np.zeros(0, np.int64)
        self._found_nothing: dict[Place, Array] = {}

    def read(self, access: Access, is_unwritten: Array) -> None:
        """A load or an atomic, of which bool [lanes] find nothing."""
        elements = access.offsets + self._first
        self._is_followed[elements[is_unwritten]] = True
        before = self._found_nothing.get(access.place, elements[:0])
        self._found_nothing[access.place] = np.union1d(before, elements[is_unwritten])
        followed = self._is_followed[elements]
        self._readers = np.union1d(self._readers, self._pairs(access, elements)[followed])

    def write(self, access: Access) -> None:
        """A store."""
        elements = access.offsets + self._first
        followed = self._is_followed[elements]
        is_new = ~np.isin(self._pairs(access, elements)[followed], self._readers)
        self._is_given[elements[followed][is_new]] = True

    def judge(self) -> dict[Place, bool]:
        """For each line that has found nothing: other programs write all that it has read there."""
        return {place: bool(self._is_given[elements].all()) for place, elements in self._found_nothing.items()}

    def _pairs(self, access: Access, elements: Array) -> Array:
        """int64 [lanes]: one number for each element and program."""
        pairs: Array = elements * self._programs + access.programs
        return pairs
