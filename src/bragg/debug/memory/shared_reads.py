"""Reads of elements that several programs have read since the last write: a writer must come after each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from bragg.debug.memory.shadow import Cells
from bragg.debug.numbers.affine import Affine
from bragg.model.table import Array

Places = Callable[[Cells, "Read"], tuple[Array, Array]]

# Reads that are kept for one range of memory; beyond, those are dropped that later writes have made past.
_FIRST_PRUNING = 256
# Offsets that are kept for all of them, where they have no closed form: 32 MB.
_MOST_OFFSETS = 1 << 22


@dataclass(frozen=True)
class Read:
    """A plain load.

    Attributes:
        closed: Its elements in closed form; None: they have none.
        offsets: int64 [lanes]: the elements otherwise.
        programs: One for each base of the closed form, or for each lane.
        size: Bytes of an element.
        address: Of the tensor.
        step: Of the launch.
        place: Its line, as a number.
    """

    closed: Affine | None
    offsets: Array | None
    programs: Array
    size: int
    address: int
    step: int
    place: int


class SharedReads:
    """The loads of one range of memory since its elements were written.

    Args:
        places: Gives the cells of a load and the program of each.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._reads: list[Read] = []
        self._prune_at = _FIRST_PRUNING
        self._offsets = 0
        self.is_complete = True

    def add(self, read: Read, cells: Cells) -> None:
        """Remember a load."""
        self._reads.append(read)
        self._offsets += 0 if read.offsets is None else len(read.offsets)
        if len(self._reads) >= self._prune_at or self._offsets > _MOST_OFFSETS:
            cells.settle()
            self._reads = [one for one in self._reads if self._is_recent(one, cells)]
            self._offsets = sum(len(one.offsets) for one in self._reads if one.offsets is not None)
            self._prune_at = max(_FIRST_PRUNING, 2 * len(self._reads))
            if self._offsets > _MOST_OFFSETS:
                self._reads.clear()
                self.is_complete = False

    def _is_recent(self, read: Read, cells: Cells) -> bool:
        index, _ = self._places(cells, read)
        return bool((cells.write_step[index] < read.step).any())

    def of(self, cells: Cells, wanted: Array) -> Iterator[tuple[Read, Array, Array]]:
        """Loads of some cells since these were written.

        Args:
            cells: Of the range.
            wanted: int64 [wanted]: numbers of cells, ascending.

        Yields:
            A load, positions in `wanted`, intp [found], and the programs that read there, int64 [found].
        """
        for read in reversed(self._reads):
            index, programs = self._places(cells, read)
            at = np.searchsorted(wanted, index).clip(max=len(wanted) - 1)
            hit = (wanted[at] == index) & (cells.write_step[index] < read.step)
            if hit.any():
                yield read, at[hit], programs[hit]
