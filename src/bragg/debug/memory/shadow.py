"""Shadow memory: who accessed each element last."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, fields
from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np

from bragg.debug.memory.storage import Buffer, window
from bragg.debug.numbers.affine import Affine
from bragg.model.table import Array

NOBODY = -1
SEVERAL = -2


@dataclass(slots=True)
class State:
    """What has happened to one cell, or to all cells of a block alike; the fields are those of `Cells`."""

    writer: int
    write_step: int
    write_place: int
    is_atomic: bool = False
    changer: int = NOBODY
    change_step: int = 0
    change_place: int = 0
    reader: int = NOBODY
    read_step: int = 0
    read_place: int = 0


_FIELDS = tuple(field.name for field in fields(State))


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
        held: What has happened to one block, and is not yet in the arrays; None: nothing.
    """

    def __init__(self, region: Region) -> None:
        self.held: tuple[CellBlock, State] | None = None
        count = -(-region.size_bytes // region.granule)
        self.address, self.granule = region.address, region.granule
        self.writer = np.full(count, NOBODY, np.int32)
        self.reader = np.full(count, NOBODY, np.int32)
        self.write_step, self.read_step = np.zeros(count, np.int32), np.zeros(count, np.int32)
        self.write_place, self.read_place = np.zeros(count, np.int16), np.zeros(count, np.int16)
        self.is_atomic = np.zeros(count, bool)
        self.changer = np.full(count, NOBODY, np.int32)
        self.change_step, self.change_place = np.zeros(count, np.int32), np.zeros(count, np.int16)

    def settle(self) -> None:
        """Bring the arrays up to date: whoever looks at them has to."""
        if self.held is not None:
            (block, state), self.held = self.held, None
            for name in _FIELDS:
                block.of(getattr(self, name))[...] = getattr(state, name)

    def state_of(self, cell: int) -> State:
        """What the arrays say of one cell."""
        return State(*[getattr(self, name).item(cell) for name in _FIELDS])

    def refine(self, granule: int) -> None:
        """Use smaller cells: a pointer was cast to one of smaller elements."""
        self.settle()
        times, self.granule = self.granule // granule, granule
        for name, array in vars(self).items():
            if isinstance(array, np.ndarray):
                setattr(self, name, np.repeat(array, times))

    def block(self, closed: Affine | None, address: int, size: int) -> CellBlock | None:
        """The cells of a block of elements.

        Args:
            closed: The elements, with a base for each program; None: they have no closed form.
            address: Of the tensor.
            size: Bytes of an element.

        Returns:
            None: lanes of the block may meet, or an element is not one cell.
        """
        if closed is None or size != self.granule or (address - self.address) % size:
            return None
        step, is_alone = 0, len(closed.base) == 1
        if not is_alone:
            steps = np.diff(closed.base)
            step = int(steps[0])
            if (steps != step).any():
                return None
        reach = _reach(closed.strides, closed.shape)
        if reach is None:
            return None
        if not is_alone and step <= reach:
            return None
        start = int(closed.base[0]) + (address - self.address) // size
        return CellBlock(self, start, (len(closed.base), *closed.shape), (step, *closed.strides))

    def lanes(self, address: int, size: int, offsets: Array, programs: Array, *more: Array) -> tuple[Array, ...]:
        """The cells of elements and what belongs to these, repeated for elements of several cells: int [n] each."""
        index = (offsets * size + (address - self.address)) // self.granule
        width = size // self.granule
        if width == 1:
            return index, programs, *(more or (offsets,))
        spread = (index[:, None] + np.arange(width)).ravel()
        return spread, *(np.repeat(array, width) for array in (programs, *(more or (offsets,))))

    def mark_read(self, index: Array, programs: Array, step: int, place: int) -> None:
        """Lanes of programs, int [n] each, have read cells; several lanes may have read one."""
        before = self.reader[index]
        mark = np.where((before == NOBODY) | (before == programs), programs, SEVERAL)
        self.reader[index] = mark
        lost = (self.reader[index] != mark) & (mark != SEVERAL)
        self.reader[index[lost | (mark == SEVERAL)]] = SEVERAL
        self.read_step[index] = step
        self.read_place[index] = place


@dataclass(slots=True)
class CellBlock:
    """The cells of a block in which no two lanes meet: each attribute of `Cells`, as a view of the block's shape.

    Attributes:
        cells: Of the whole range.
        start: The first one.
        shape: Of the block, programs first.
        strides: In cells.
    """

    cells: Cells
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def of(self, array: Array) -> Array:
        """The view of one attribute, of any type: [n_cells] becomes the block's shape."""
        return window(array, self.start, self.shape, self.strides)

    def mark_read(self, programs: Array, step: int, place: int) -> None:
        """Programs, int32 [programs, 1, ...], have read it."""
        reader = self.of(self.cells.reader)
        if (reader == NOBODY).all():
            reader[...] = programs
        else:
            reader[...] = np.where((reader == NOBODY) | (reader == programs), programs, SEVERAL)
        self.of(self.cells.read_step)[...] = step
        self.of(self.cells.read_place)[...] = place

    def mark_written(self, programs: Array, step: int, place: int) -> None:
        """Programs, int32 [programs, 1, ...], have stored there, after all that was done before."""
        cells = self.cells
        self.of(cells.writer)[...] = programs
        self.of(cells.write_step)[...] = step
        self.of(cells.write_place)[...] = place
        self.of(cells.is_atomic)[...] = False
        self.of(cells.reader)[...] = NOBODY


@lru_cache(maxsize=512)
def _reach(strides: tuple[int, ...], shape: tuple[int, ...]) -> int | None:
    """From the first to the last element of a block; None: two elements may be the same."""
    reach = 0
    for stride, extent in sorted((s, n) for s, n in zip(strides, shape, strict=True) if n > 1):
        if stride <= reach:
            return None
        reach += stride * (extent - 1)
    return reach


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
        self._found: WeakKeyDictionary[Buffer, Region] = WeakKeyDictionary()
        for region in sorted((_region(b) for b in buffers if len(b.flat)), key=lambda region: region.address):
            last = self._known[-1] if self._known else None
            if last is not None and region.address < last.address + last.size_bytes:
                last.granule = math.gcd(last.granule, region.granule, region.address - last.address)
                last.size_bytes = max(last.size_bytes, region.address + region.size_bytes - last.address)
            else:
                self._known.append(region)

    def of(self, buffer: Buffer) -> Region:
        """The range that a tensor lies in; a new one for a tensor that was not known."""
        region = self._found.get(buffer)
        if region is None:
            region = self._found[buffer] = self._find(_region(buffer))
        return region

    def _find(self, wanted: Region) -> Region:
        place = bisect_right(self._known, wanted.address, key=lambda region: region.address)
        found = self._known[place - 1] if place else None
        if found is None or wanted.address >= found.address + found.size_bytes:
            self._known.insert(place, wanted)
            return wanted
        return found


def _region(buffer: Buffer) -> Region:
    size = buffer.dtype.size_bytes
    return Region(buffer.address + buffer.low * size, len(buffer.flat) * size, size)
