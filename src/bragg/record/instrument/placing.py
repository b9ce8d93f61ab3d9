"""When the blocks of a launch ran, and on which multiprocessor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bragg.code.instrument.readings import Warps


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks that ended; all arrays are [blocks].

    Attributes:
        number: int64, of the block in its launch.
        multiprocessor: int64.
        start_ns, end_ns: int64, on the GPU's global timer.
        start, end: uint64, on the clock of the multiprocessor, cycles.
    """

    number: NDArray[np.int64]
    multiprocessor: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    start: NDArray[np.uint64]
    end: NDArray[np.uint64]

    @property
    def first_ns(self) -> int:
        """When the first one began."""
        return int(self.start_ns.min())

    @property
    def last_ns(self) -> int:
        """When the last one ended."""
        return int(self.end_ns.max())

    @cached_property
    def resident(self) -> int:
        """Most that a multiprocessor had at one time, by its own clock: the global timer has steps of up to 1 us."""
        where = np.concatenate([self.multiprocessor, self.multiprocessor])
        change = np.repeat(np.array([1, -1]), len(self.number))
        # At one cycle what ends goes before what begins. Each multiprocessor's changes add up to 0.
        order = np.lexsort((change, np.concatenate([self.start, self.end]), where))
        return max(int(np.cumsum(change[order]).max()), 1)

    @property
    def tail_share(self) -> float:
        """Part of the places for blocks, over the launch, that stood empty after the last block had begun."""
        places = self.resident * len(np.unique(self.multiprocessor))
        last_start_ns = int(self.start_ns.max())
        used_ns = int(np.maximum(self.end_ns - last_start_ns, 0).sum())
        whole_ns = places * (self.last_ns - self.first_ns)
        return max(places * (self.last_ns - last_start_ns) - used_ns, 0) / whole_ns if whole_ns else 0.0


def blocks_of(warps: Warps, warps_of_block: int) -> Blocks:
    """The blocks of the warps of a launch."""
    slots, row = np.unique(warps.slot // warps_of_block, return_inverse=True)
    start_ns, end_ns = np.full(len(slots), np.iinfo(np.int64).max), np.zeros(len(slots), np.int64)
    start, end = np.full(len(slots), np.iinfo(np.uint64).max, np.uint64), np.zeros(len(slots), np.uint64)
    number, multiprocessor = np.zeros(len(slots), np.int64), np.zeros(len(slots), np.int64)
    np.minimum.at(start_ns, row, warps.start_ns)
    np.maximum.at(end_ns, row, warps.end_ns)
    np.minimum.at(start, row, warps.start)
    np.maximum.at(end, row, warps.end)
    number[row], multiprocessor[row] = warps.block, warps.multiprocessor
    return Blocks(number, multiprocessor, start_ns, end_ns, start, end)
