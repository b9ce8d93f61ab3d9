"""Shadow memory: who accessed each element last."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from bragg.debug.memory.storage import Buffer

__all__ = ["NOBODY", "SEVERAL", "Cells", "Region", "Regions"]

NOBODY = -1
SEVERAL = -2


class Cells:
    """Shadow of one range of memory, one cell for each granule of bytes.

    Attributes:
        address: Of the first byte.
        granule: Bytes of a cell: the smallest element of the tensors that lie there.
        writer: int32: program that wrote last, or NOBODY.
        write_step: int32: when, in steps of the launch.
        write_place: int16: where, as a number that the owner gives to source lines.
        is_atomic: bool: the last write was an atomic.
        changer: int32: another program that changed it by an atomic right before `writer` did so, or NOBODY.
        change_step: int32.
        change_place: int16.
        reader: int32: program that read since the last write, NOBODY, or SEVERAL.
        read_step: int32.
        read_place: int16.
    """

    def __init__(self, region: Region) -> None:
        count = -(-region.size_bytes // region.granule)
        self.address, self.granule = region.address, region.granule
        self.writer = np.full(count, NOBODY, np.int32)
        self.reader = np.full(count, NOBODY, np.int32)
        self.write_step, self.read_step = np.zeros(count, np.int32), np.zeros(count, np.int32)
        self.write_place, self.read_place = np.zeros(count, np.int16), np.zeros(count, np.int16)
        self.is_atomic = np.zeros(count, bool)
        self.changer = np.full(count, NOBODY, np.int32)
        self.change_step, self.change_place = np.zeros(count, np.int32), np.zeros(count, np.int16)

    def refine(self, granule: int) -> None:
        """Use smaller cells: a pointer was cast to one of smaller elements."""
        times, self.granule = self.granule // granule, granule
        for name, array in vars(self).items():
            if isinstance(array, np.ndarray):
                setattr(self, name, np.repeat(array, times))


@dataclass
class Region:
    """A range of memory that tensors share.

    Attributes:
        address: Of the first byte.
        size_bytes: Of the range.
        granule: Bytes that are never written in part.
    """

    address: int
    size_bytes: int
    granule: int


class Regions:
    """The ranges of memory of a launch's tensors, and of tensors that it finds by their addresses.

    Args:
        buffers: The tensors among the arguments.
    """

    def __init__(self, buffers: list[Buffer]) -> None:
        self._known: list[Region] = []
        for region in sorted((_region(b) for b in buffers if len(b.flat)), key=lambda region: region.address):
            last = self._known[-1] if self._known else None
            if last is not None and region.address < last.address + last.size_bytes:
                last.granule = math.gcd(last.granule, region.granule, region.address - last.address)
                last.size_bytes = max(last.size_bytes, region.address + region.size_bytes - last.address)
            else:
                self._known.append(region)

    def of(self, buffer: Buffer) -> Region:
        """The range that a tensor lies in; a new one for a tensor that was not known."""
        wanted = _region(buffer)
        place = bisect_right(self._known, wanted.address, key=lambda region: region.address)
        found = self._known[place - 1] if place else None
        if found is None or wanted.address >= found.address + found.size_bytes:
            self._known.insert(place, wanted)
            return wanted
        return found


def _region(buffer: Buffer) -> Region:
    size = buffer.dtype.size_bytes
    return Region(buffer.address + buffer.low * size, len(buffer.flat) * size, size)
