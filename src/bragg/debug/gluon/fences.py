"""Shared memory that the kernel itself has written, and that nothing has made visible to copies and products since.

A GPU of Hopper or later reaches shared memory in two ways, its proxies: the kernel's own stores go by the generic one;
TMA, WGMMA and tcgen05 read by the asynchronous one, which needs a fence in between. Triton's compiler adds none to
kernels of Gluon, except before copies into memory that the kernel has read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bragg.debug.flow.place import kernel_line
from bragg.debug.gluon.tracker import AsyncWork, Tracker
from bragg.debug.state import machine
from bragg.model.table import Array

if TYPE_CHECKING:
    from bragg.debug.gluon.shared_memory import SharedMemory


class Fences(Tracker):
    """Follows what the kernel writes.

    Args:
        tell: Called with a read without a fence; (its kind, file and line of the write, rows of the batch).
    """

    def __init__(self, tell: Callable[[str, tuple[str, int], Array], None]) -> None:
        self._tell = tell
        self._places: list[tuple[str, int]] = []
        # For each allocation the number of the write of each byte, int32 [batch, bytes]; 0: none of the kernel.
        self._marks: dict[int, tuple[Any, Array]] = {}
        # Of which batch the marks are, and for each of its programs the last write that a fence follows.
        self._batch = np.empty(0, np.int64)
        self._fenced = np.empty(0, np.int32)

    def written(self, memory: SharedMemory, chosen: Array) -> None:
        """The kernel itself writes, in the active programs that are `chosen`: bool [active]."""
        self._begin()
        self._places.append(kernel_line())
        self._mark(memory, chosen, len(self._places))

    def fenced(self) -> None:
        """All writes so far, of whichever partition, are followed by a fence."""
        self._begin()
        self._fenced[machine().rows] = len(self._places)

    def started(self, work: AsyncWork) -> None:
        """A copy or product begins."""
        self._begin()
        for memory in work.reads:
            if id(getattr(memory, "memory", None)) in self._marks:
                self._look(work.kind, memory, work.chosen)
        if work.writes is not None and id(work.writes.memory) in self._marks:
            self._mark(work.writes, work.chosen, 0)

    def _begin(self) -> None:
        """Nothing is known of a new batch."""
        if self._batch is not machine().linear:
            self._batch = machine().linear
            self._fenced = np.zeros(len(self._batch), np.int32)
            self._marks.clear()

    def _mark(self, memory: SharedMemory, chosen: Array, number: int) -> None:
        allocation = memory.memory
        if allocation.is_tensor_memory:
            return
        _, marks = self._marks.setdefault(id(allocation), (allocation, np.zeros(allocation.data.shape, np.int32)))
        typed, places = memory.marked(marks, chosen)
        typed[places] = number

    def _look(self, kind: str, memory: SharedMemory, chosen: Array) -> None:
        typed, places = memory.marked(self._marks[id(memory.memory)][1], chosen)
        rows = places[0][:, 0]
        numbers = typed[places].max(axis=(1, 2))
        is_bare = numbers > self._fenced[rows]
        for number in np.unique(numbers[is_bare]).tolist():
            self._tell(kind, self._places[number - 1], rows[numbers == number])
